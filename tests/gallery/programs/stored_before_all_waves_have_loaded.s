// A wave stores in memory what another wave of its workgroup may not have loaded yet: the barrier before the store is missing
// report: global_race
// at: global_store_dword
// other: global_load_dword
// message: of this workgroup
// launch: waves=3
.include "kernel.inc"

kernel_begin
  arguments
  v_mov_b32_e32 v3, 0
  global_load_dword v4, v3, s[4:5]
  s_waitcnt vmcnt(0)
.if !BUG
  s_barrier
.endif
  s_cmp_lg_u32 s10, 2
  s_cbranch_scc1 done
  s_mov_b64 exec, 1
  global_store_dword v3, v0, s[4:5]
done:
kernel_end
