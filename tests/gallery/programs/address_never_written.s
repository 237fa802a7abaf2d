// An address is computed from a register that was never written
// report: register_uninitialised
// at: global_load_dword
// other: v_add_u32_e32 v3
.include "kernel.inc"

kernel_begin
  arguments
.if !BUG
  v_mov_b32_e32 v7, 0
.endif
  v_add_u32_e32 v3, v7, v1
  global_load_dword v4, v3, s[4:5]
  s_waitcnt vmcnt(0)
kernel_end
