// Half of the lanes of a wave pass a barrier that the other half skips
// report: barrier_divergent
// severity: warning
// at: s_barrier
// other: global_store_dword
// lane: 32
// launch: waves=2
.include "kernel.inc"

kernel_begin
  arguments
  v_and_b32_e32 v3, 63, v0
  v_cmp_gt_u32_e32 vcc, 32, v3
  s_and_saveexec_b64 s[16:17], vcc
  v_add_u32_e32 v0, 1, v0
.if BUG
  s_barrier
  s_or_b64 exec, exec, s[16:17]
.else
  s_or_b64 exec, exec, s[16:17]
  s_barrier
.endif
  global_store_dword v1, v0, s[4:5]
kernel_end
