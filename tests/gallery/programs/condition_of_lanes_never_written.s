// A condition that was never written decides which lanes execute a branch
// report: register_uninitialised
// at: s_and_saveexec_b64
// other: v_cmp_gt_u32_e32
// lane: 0
.include "kernel.inc"

kernel_begin
  arguments
.if BUG
  v_cmp_gt_u32_e32 vcc, 32, v20
.else
  v_cmp_gt_u32_e32 vcc, 32, v0
.endif
  s_and_saveexec_b64 s[16:17], vcc
  global_store_dword v1, v0, s[4:5]
  s_or_b64 exec, exec, s[16:17]
kernel_end
