// The instruction after v_exp_f32 reads its result
// report: hazard
// at: v_add_f32_e32 v3
// other: v_exp_f32
.include "kernel.inc"

kernel_begin
  v_mov_b32_e32 v3, 0
  v_exp_f32_e32 v3, v3
.if !BUG
  s_nop 0
.endif
  v_add_f32_e32 v3, v3, v3
kernel_end
