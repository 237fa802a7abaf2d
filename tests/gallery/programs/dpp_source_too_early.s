// A DPP instruction reads a register that was written one instruction before
// report: hazard
// at: v_mov_b32_dpp
// other: v_mov_b32_e32 v3
.include "kernel.inc"

kernel_begin
  v_mov_b32_e32 v3, 1
  v_mov_b32_e32 v4, 0
.if !BUG
  s_nop 0
.endif
  v_mov_b32_dpp v4, v3 quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf
kernel_end
