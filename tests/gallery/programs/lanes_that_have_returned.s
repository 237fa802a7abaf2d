// Lanes have returned from the kernel when the others of their wave reach a barrier
// report: none
// launch: waves=2
.include "kernel.inc"

kernel_begin
  arguments
  v_and_b32_e32 v3, 63, v0
  v_cmp_gt_u32_e32 vcc, 32, v3
  s_and_saveexec_b64 s[16:17], vcc
  s_barrier
  global_store_dword v1, v0, s[4:5]
  s_or_b64 exec, exec, s[16:17]
kernel_end
