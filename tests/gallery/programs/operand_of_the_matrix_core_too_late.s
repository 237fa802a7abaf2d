// The matrix core reads a register that was written just before
// report: hazard
// at: v_mfma_f32_32x32x8_f16
// other: v_mov_b32_e32 v5
.include "kernel.inc"

kernel_begin
  v_mov_b32_e32 v4, 0
  v_mov_b32_e32 v5, 0
.if BUG
  s_nop 0
.else
  s_nop 1
.endif
  v_mfma_f32_32x32x8_f16 v[8:23], v[4:5], v[4:5], 0
kernel_end
