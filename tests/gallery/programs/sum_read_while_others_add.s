// Atomics of two waves may meet in LDS, but a read may not meet them
// report: lds_race
// at: ds_add_u32
// other: ds_read_b32
// launch: waves=2
.include "kernel.inc"

kernel_begin
  arguments
  v_mov_b32_e32 v3, 0
  v_mov_b32_e32 v4, 1
  s_cmp_lg_u32 s10, 0
  s_cbranch_scc1 .Lcleared
  ds_write_b32 v3, v3
  s_waitcnt lgkmcnt(0)
.Lcleared:
  s_barrier
  ds_add_u32 v3, v4
  s_waitcnt lgkmcnt(0)
.if !BUG
  s_barrier
.endif
  ds_read_b32 v5, v3
  s_waitcnt lgkmcnt(0)
  global_store_dword v1, v5, s[4:5]
kernel_end
