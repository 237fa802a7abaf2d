// Every workgroup resets the counter behind its own atomic; the last one may, because all other atomics came before its own
// report: global_race
// at: global_
// other: global_
// launch: groups=4
.include "kernel.inc"

kernel_begin
  arguments
  last_workgroup
.if !BUG
  s_cmp_lg_u32 s17, 3
  s_cbranch_scc1 done
.endif
  global_store_dword v5, v4, s[8:9]
done:
kernel_end
