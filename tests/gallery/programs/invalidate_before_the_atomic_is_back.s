// The last workgroup drops what its caches hold before the atomic that tells it so has come back
// report: stale_cache
// at: global_load_dwordx4
// other: global_store_dword
// launch: groups=4
.include "kernel.inc"

kernel_begin
  arguments
  // Each workgroup writes its part
  s_lshl_b32 s16, s2, 2
  v_mov_b32_e32 v3, s16
  v_mov_b32_e32 v4, s2
  s_mov_b64 exec, 1
  s_nop 4
  global_store_dword v3, v4, s[4:5]
  buffer_wbl2 sc1
  s_waitcnt vmcnt(0)
  // and counts itself.
  v_mov_b32_e32 v5, 0
  v_mov_b32_e32 v6, 1
  global_atomic_add v7, v5, v6, s[8:9] sc0
.if BUG
  buffer_inv sc1
.endif
  s_waitcnt vmcnt(0)
.if !BUG
  buffer_inv sc1
.endif
  v_readfirstlane_b32 s17, v7
  s_nop 4
  s_cmp_lg_u32 s17, 3
  s_cbranch_scc1 done
  // The last one reads all parts.
  global_load_dwordx4 v[8:11], v5, s[4:5]
  s_waitcnt vmcnt(0)
done:
kernel_end
