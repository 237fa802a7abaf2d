// A wave reads LDS that another wave writes, without a barrier in between
// report: lds_race
// at: ds_read_b32
// other: ds_write_b32 v1
// launch: waves=2
.include "kernel.inc"

kernel_begin
  arguments
  v_mov_b32_e32 v4, 0
  v_xor_b32_e32 v3, 0x100, v1
  ds_write_b32 v3, v4
  s_waitcnt lgkmcnt(0)
  s_barrier
  ds_write_b32 v1, v0
  s_waitcnt lgkmcnt(0)
.if !BUG
  s_barrier
.endif
  ds_read_b32 v4, v3
  s_waitcnt lgkmcnt(0)
  global_store_dword v1, v4, s[4:5]
  s_barrier
kernel_end
