// op_sel makes a packed multiplication use one dword twice, and it was never written; the other dword was
// report: register_uninitialised
// at: global_store_dwordx2
// other: v_pk_mul_f32
.include "kernel.inc"

kernel_begin
  arguments
  v_mov_b32_e32 v4, 1.0
  v_mov_b32_e32 v5, 1.0
  v_mov_b32_e32 v6, 2.0
.if BUG
  v_pk_mul_f32 v[4:5], v[4:5], v[6:7] op_sel:[0,1]
.else
  v_pk_mul_f32 v[4:5], v[4:5], v[6:7] op_sel_hi:[1,0]
.endif
  v_lshlrev_b32_e32 v3, 3, v0
  global_store_dwordx2 v3, v[4:5], s[4:5]
kernel_end
