// A store of a sum with a register that was never written
// report: register_uninitialised
// at: global_store_dword v1, v3
// other: v_add_u32_e32 v3
.include "kernel.inc"

kernel_begin
  arguments
.if !BUG
  v_mov_b32_e32 v7, 1
.endif
  v_add_u32_e32 v3, v7, v0
  global_store_dword v1, v3, s[4:5]
kernel_end
