// A scalar is used before the load that brings it was waited for
// report: pending_register
// at: s_mov_b32 s16
// other: s_load_dwordx2
.include "kernel.inc"

kernel_begin
  s_load_dwordx2 s[4:5], s[0:1], 0x0
.if !BUG
  s_waitcnt lgkmcnt(0)
.endif
  s_mov_b32 s16, s5
  s_waitcnt lgkmcnt(0)
kernel_end
