// Workgroups store the same value to one dword, unordered: a flag that says that something has happened
// report: global_equal_stores
// severity: note
// at: global_store_dword
// other: global_store_dword
// launch: groups=4
.include "kernel.inc"

kernel_begin
  arguments
  v_mov_b32_e32 v3, 0
  v_mov_b32_e32 v4, 1
  s_mov_b64 exec, 1
.if !BUG
  s_cmp_lg_u32 s2, 0
  s_cbranch_scc1 done
.endif
  global_store_dword v3, v4, s[4:5]
done:
kernel_end
