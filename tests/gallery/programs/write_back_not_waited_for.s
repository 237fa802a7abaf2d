// One wave writes back what another wave of its workgroup has stored, but counts the workgroup as done before that is finished
// report: stale_cache
// at: global_load_dword
// other: global_store_dword
// message: no buffer_wbl2 sc1
// launch: groups=4 waves=2
.include "kernel.inc"

kernel_begin
  arguments
  // The second wave writes the workgroup's part
  s_lshl_b32 s16, s2, 2
  v_mov_b32_e32 v3, s16
  v_mov_b32_e32 v4, s2
  s_mov_b64 exec, 1
  s_cmp_eq_u32 s10, 0
  s_cbranch_scc1 stored
  global_store_dword v3, v4, s[4:5]
  s_waitcnt vmcnt(0)
stored:
  s_barrier
  // and the first one counts it.
  s_cmp_lg_u32 s10, 0
  s_cbranch_scc1 done
  buffer_wbl2 sc1
.if !BUG
  s_waitcnt vmcnt(0)
.endif
  v_mov_b32_e32 v5, 0
  v_mov_b32_e32 v6, 1
  global_atomic_add v7, v5, v6, s[8:9] sc0
  s_waitcnt vmcnt(0)
  buffer_inv sc1
  v_readfirstlane_b32 s17, v7
  s_nop 4
  s_cmp_lg_u32 s17, 3
  s_cbranch_scc1 done
  global_load_dwordx4 v[8:11], v5, s[4:5]
  s_waitcnt vmcnt(0)
done:
kernel_end
