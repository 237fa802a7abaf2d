// A condition is undefined in lanes where another condition, combined with it, is already false
// report: none
.include "kernel.inc"

kernel_begin
  arguments
  v_cmp_gt_u32_e32 vcc, 8, v0
  s_and_saveexec_b64 s[16:17], vcc
  v_mov_b32_e32 v3, v0
  s_mov_b64 exec, s[16:17]
  v_cmp_gt_u32_e64 s[18:19], 4, v3
  s_and_b64 s[18:19], vcc, s[18:19]
  s_and_saveexec_b64 s[16:17], s[18:19]
  global_store_dword v1, v0, s[4:5]
  s_or_b64 exec, exec, s[16:17]
kernel_end
