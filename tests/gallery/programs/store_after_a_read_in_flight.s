// A wave arrives at a barrier with a read in flight, and another wave stores there after the barrier
// report: lds_write_after_read
// severity: warning
// at: ds_write_b32 v3, v4
// other: ds_read_b32
// launch: waves=2
.include "kernel.inc"

kernel_begin
  arguments
  v_xor_b32_e32 v3, 0x100, v1
  v_mov_b32_e32 v4, -1
  ds_write_b32 v1, v0
  s_waitcnt lgkmcnt(0)
  ds_read_b32 v5, v1
.if !BUG
  s_waitcnt lgkmcnt(0)
.endif
  s_barrier
  ds_write_b32 v3, v4
  s_waitcnt lgkmcnt(0)
kernel_end
