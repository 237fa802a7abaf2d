// Copies are not ordered with LDS instructions: after the barrier, one may overtake a read that was not waited for
// report: lds_race
// at: buffer_load_dword
// other: ds_read_b32
// launch: waves=2, lds=256
.include "kernel.inc"

kernel_begin
  arguments
  data_resource
  s_mov_b32 m0, 0
  s_nop 0
  v_and_b32_e32 v3, 0xff, v1
  s_cmp_lg_u32 s10, 0
  s_cbranch_scc1 .Lfilled
  buffer_load_dword v1, s[12:15], 0 offen lds
  s_waitcnt vmcnt(0)
.Lfilled:
  s_barrier
  ds_read_b32 v4, v3
.if !BUG
  s_waitcnt lgkmcnt(0)
.endif
  s_barrier
  s_cmp_lg_u32 s10, 0
  s_cbranch_scc1 .Lrefilled
  buffer_load_dword v1, s[12:15], 0 offen lds
  s_waitcnt vmcnt(0)
.Lrefilled:
  s_barrier
  s_waitcnt lgkmcnt(0)
kernel_end
