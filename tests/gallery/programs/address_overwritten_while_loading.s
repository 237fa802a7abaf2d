// A register is overwritten before a pending load writes it
// report: pending_register
// at: v_mov_b32_e32 v3
// other: global_load_dword v3
.include "kernel.inc"

kernel_begin
  arguments
  global_load_dword v3, v1, s[4:5]
.if !BUG
  s_waitcnt vmcnt(0)
.endif
  v_mov_b32_e32 v3, 0
  s_waitcnt vmcnt(0)
kernel_end
