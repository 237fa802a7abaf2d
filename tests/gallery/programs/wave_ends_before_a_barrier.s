// One of two waves ends, and the other waits at a barrier: each wave of a workgroup must reach each barrier
// report: barrier_mismatch
// at: s_barrier
// other: s_endpgm
// message: wave 1 of the workgroup has ended
// launch: waves=2
.include "kernel.inc"

kernel_begin
  arguments
.if BUG
  s_cmp_lg_u32 s10, 0
  s_cbranch_scc1 done
.endif
  s_barrier
  global_store_dword v1, v0, s[4:5]
done:
kernel_end
