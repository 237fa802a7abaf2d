// A result of the matrix core is read too early by count, but a taken branch is in between
// report: hazard
// level: by_count
// severity: warning
// at: v_add_f32_e32 v3
// other: v_mfma_f32_32x32x8_f16
.include "kernel.inc"

kernel_begin
  v_mov_b32_e32 v4, 0
  v_mov_b32_e32 v5, 0
  s_nop 1
  v_mfma_f32_32x32x8_f16 v[8:23], v[4:5], v[4:5], 0
.if !BUG
  s_nop 9
.endif
  s_branch over
  s_endpgm
over:
  v_add_f32_e32 v3, v8, v9
kernel_end
