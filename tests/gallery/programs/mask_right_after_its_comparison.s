// A comparison is the mask of the next instruction: LLVM keeps them apart, the manual asks for nothing between them
// report: hazard
// level: waived
// severity: warning
// at: v_cndmask_b32_e64 v3
// other: v_cmp_eq_u32_e64 s[16:17]
.include "kernel.inc"

kernel_begin
  arguments
  v_cmp_eq_u32_e64 s[16:17], 0, v0
.if !BUG
  s_nop 1
.endif
  v_cndmask_b32_e64 v3, v0, v1, s[16:17]
kernel_end
