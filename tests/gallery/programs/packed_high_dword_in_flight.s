// op_sel makes a packed sum use one dword twice, and its load is still pending; the other dword has arrived
// report: pending_register
// at: v_pk_add_f32
// other: global_load_dword v7
.include "kernel.inc"

kernel_begin
  arguments
  v_mov_b32_e32 v6, 2.0
  global_load_dword v7, v1, s[4:5]
.if BUG
  v_pk_add_f32 v[4:5], v[6:7], v[6:7] op_sel:[1,1]
.else
  v_pk_add_f32 v[4:5], v[6:7], v[6:7] op_sel_hi:[0,0]
.endif
  s_waitcnt vmcnt(0)
kernel_end
