// A comparison that writes EXEC reads a register that was never written
// report: register_uninitialised
// at: v_cmpx_gt_u32
// message: decides EXEC
.include "kernel.inc"

kernel_begin
  arguments
.if !BUG
  v_mov_b32_e32 v20, 0
.endif
  v_cmpx_gt_u32_e32 vcc, 32, v20
  global_store_dword v1, v0, s[4:5]
kernel_end
