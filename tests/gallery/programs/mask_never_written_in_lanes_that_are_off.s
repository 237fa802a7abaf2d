// A mask is undefined in lanes that are off, as compilers leave it where lanes come together
// report: none
.include "kernel.inc"

kernel_begin
  arguments
  v_cmp_gt_u32_e32 vcc, 8, v0
  s_and_saveexec_b64 s[16:17], vcc
  v_cmp_gt_u32_e32 vcc, 4, v0
  s_andn2_b64 s[20:21], s[20:21], exec
  s_and_b64 s[18:19], vcc, exec
  s_or_b64 s[20:21], s[20:21], s[18:19]
  s_and_saveexec_b64 s[18:19], s[20:21]
  global_store_dword v1, v0, s[4:5]
  s_or_b64 exec, exec, s[16:17]
kernel_end
