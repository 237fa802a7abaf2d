// A comparison is read as a number, not as a mask: that needs two wait states
// report: hazard
// level: required
// at: v_mov_b32_e32 v3
// other: v_cmp_eq_u32_e64 s[16:17]
.include "kernel.inc"

kernel_begin
  arguments
  v_cmp_eq_u32_e64 s[16:17], 0, v0
.if BUG
  s_nop 0
.else
  s_nop 1
.endif
  v_mov_b32_e32 v3, s16
kernel_end
