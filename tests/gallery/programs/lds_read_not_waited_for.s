// A value is used before the read of LDS that brings it was waited for
// report: pending_register
// at: v_mov_b32_e32 v4
// other: ds_read_b32
.include "kernel.inc"

kernel_begin
  arguments
  ds_write_b32 v1, v0
  ds_read_b32 v3, v1
.if !BUG
  s_waitcnt lgkmcnt(0)
.endif
  v_mov_b32_e32 v4, v3
  s_waitcnt lgkmcnt(0)
kernel_end
