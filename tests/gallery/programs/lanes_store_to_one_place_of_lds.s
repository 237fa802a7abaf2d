// Pairs of lanes store different values to one dword of LDS; in the twin the values are equal
// report: lanes_store_different
// severity: warning
// at: ds_write_b32
// lane: 1
// message: lane 0 stores another value
.include "kernel.inc"

kernel_begin
  arguments
  v_lshrrev_b32_e32 v3, 1, v0
  v_lshlrev_b32_e32 v4, 2, v3
.if BUG
  ds_write_b32 v4, v0
.else
  ds_write_b32 v4, v3
.endif
  s_waitcnt lgkmcnt(0)
kernel_end
