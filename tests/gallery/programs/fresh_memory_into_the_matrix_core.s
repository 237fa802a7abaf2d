// Part of a matrix operand was loaded from memory that was never written
// report: register_uninitialised
// at: v_mfma_f32_32x32x8_f16
// other: global_load_dwordx2 v[4:5]
.include "kernel.inc"

kernel_begin
  arguments
  v_lshlrev_b32_e32 v3, 3, v0
.if BUG
  global_load_dwordx2 v[4:5], v3, s[6:7]
.else
  global_load_dwordx2 v[4:5], v3, s[4:5]
.endif
  global_load_dwordx2 v[6:7], v3, s[4:5]
  s_waitcnt vmcnt(0)
  v_mfma_f32_32x32x8_f16 v[8:23], v[4:5], v[6:7], 0
kernel_end
