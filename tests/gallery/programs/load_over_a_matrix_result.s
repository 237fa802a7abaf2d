// A load overwrites a result that the matrix core has not written yet: the manual's rows name only vector instructions
// report: hazard
// level: compiler
// severity: warning
// at: global_load_dword v8
// other: v_mfma_f32_32x32x8_f16
.include "kernel.inc"

kernel_begin
  arguments
  v_mov_b32_e32 v4, 0
  v_mov_b32_e32 v5, 0
  s_nop 1
  v_mfma_f32_32x32x8_f16 v[8:23], v[4:5], v[4:5], 0
.if !BUG
  s_nop 10
.endif
  global_load_dword v8, v1, s[4:5]
  s_waitcnt vmcnt(0)
kernel_end
