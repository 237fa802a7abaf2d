// A plain load meets atomics of other workgroups; before a compare-and-swap, which finds out if the value is old, it may
// report: global_race
// at: global_load_dword
// other: global_atomic_
// launch: groups=4
.include "kernel.inc"

kernel_begin
  arguments
  v_mov_b32_e32 v3, 0
  s_mov_b64 exec, 1
  global_load_dword v5, v3, s[8:9]
  s_waitcnt vmcnt(0)
.if BUG
  v_mov_b32_e32 v4, 1
  global_atomic_add v3, v4, s[8:9]
.else
retry:
  v_add_u32_e32 v4, 1, v5
  global_atomic_cmpswap v6, v3, v[4:5], s[8:9] sc0
  s_waitcnt vmcnt(0)
  v_cmp_eq_u32_e32 vcc, v5, v6
  v_mov_b32_e32 v5, v6
  s_nop 4
  s_cbranch_vccz retry
.endif
kernel_end
