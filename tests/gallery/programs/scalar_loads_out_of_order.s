// Scalar loads return in any order: waiting for all but one of them does not show which have arrived
// report: pending_register
// at: s_add_u32 s16
// other: s_load_dwordx2 s[4:5]
.include "kernel.inc"

kernel_begin
  s_load_dwordx2 s[4:5], s[0:1], 0x0
  s_load_dwordx2 s[6:7], s[0:1], 0x8
.if BUG
  s_waitcnt lgkmcnt(1)
.else
  s_waitcnt lgkmcnt(0)
.endif
  s_add_u32 s16, s4, 4
  s_waitcnt lgkmcnt(0)
kernel_end
