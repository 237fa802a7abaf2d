// The second round writes LDS while another wave may still read the first
// report: lds_race
// at: ds_write_b32 v1, v4
// other: ds_read_b32
// launch: waves=2
.include "kernel.inc"

kernel_begin
  arguments
  v_xor_b32_e32 v3, 0x100, v1
  ds_write_b32 v1, v0
  s_waitcnt lgkmcnt(0)
  s_barrier
  ds_read_b32 v4, v3
  s_waitcnt lgkmcnt(0)
.if !BUG
  s_barrier
.endif
  ds_write_b32 v1, v4
  s_waitcnt lgkmcnt(0)
kernel_end
