// A vector instruction reads a result of the matrix core one wait state too early
// report: hazard
// at: v_add_f32_e32 v3
// other: v_mfma_f32_32x32x8_f16
.include "kernel.inc"

kernel_begin
  v_mov_b32_e32 v4, 0
  v_mov_b32_e32 v5, 0
  s_nop 1
  v_mfma_f32_32x32x8_f16 v[8:23], v[4:5], v[4:5], 0
.if BUG
  s_nop 9
.else
  s_nop 10
.endif
  v_add_f32_e32 v3, v8, v9
kernel_end
