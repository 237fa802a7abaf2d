// Each of two waves takes a side of a branch with a barrier: they meet, but at different places
// report: barrier_places
// severity: warning
// at: s_barrier
// other: s_barrier
// launch: waves=2
.include "kernel.inc"

kernel_begin
  arguments
.if BUG
  s_cmp_lg_u32 s10, 0
  s_cbranch_scc1 second
.endif
  s_barrier
  s_branch done
second:
  s_barrier
done:
  global_store_dword v1, v0, s[4:5]
kernel_end
