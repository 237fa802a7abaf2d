// Lanes are off at an MFMA, but the matrix core ignores EXEC
// report: exec_at_mfma
// at: v_mfma_f32_32x32x8_f16
.include "kernel.inc"

kernel_begin
  v_mov_b32_e32 v4, 0
  v_mov_b32_e32 v5, 0
.if BUG
  s_mov_b64 exec, 0xffff
.endif
  s_nop 4
  v_mfma_f32_32x32x8_f16 v[8:23], v[4:5], v[4:5], 0
kernel_end
