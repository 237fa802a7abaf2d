// The barrier does not wait for the write before it
// report: lds_race
// at: ds_read_b32
// other: ds_write_b32
// launch: waves=2
.include "kernel.inc"

kernel_begin
  arguments
  ds_write_b32 v1, v0
.if !BUG
  s_waitcnt lgkmcnt(0)
.endif
  s_barrier
  v_xor_b32_e32 v3, 0x100, v1
  ds_read_b32 v4, v3
  s_waitcnt lgkmcnt(0)
  global_store_dword v1, v4, s[4:5]
  s_barrier
kernel_end
