// A wave waits for its copy into LDS only after the barrier that another wave relies on
// report: lds_race
// at: ds_read_b32
// other: buffer_load_dword
// launch: waves=2
.include "kernel.inc"

kernel_begin
  arguments
  data_resource
  s_mov_b32 m0, 0
  s_nop 0
  v_and_b32_e32 v3, 0xff, v1
  s_cmp_lg_u32 s10, 0
  s_cbranch_scc1 .Lmeet
  buffer_load_dword v1, s[12:15], 0 offen lds
.if !BUG
  s_waitcnt vmcnt(0)
.endif
.Lmeet:
  s_barrier
  s_cmp_lg_u32 s10, 0
  s_cbranch_scc1 .Lread
  s_waitcnt vmcnt(0)
  s_endpgm
.Lread:
  ds_read_b32 v4, v3
  s_waitcnt lgkmcnt(0)
  global_store_dword v1, v4, s[4:5]
kernel_end
