// Two waves write the same dword of LDS unordered
// report: lds_race
// at: ds_write_b32
// other: ds_write_b32
// launch: waves=2
.include "kernel.inc"

kernel_begin
  arguments
  v_mbcnt_lo_u32_b32 v3, -1, 0
  v_mbcnt_hi_u32_b32 v3, -1, v3
  v_lshlrev_b32_e32 v3, 2, v3
.if BUG
  ds_write_b32 v3, v0
.else
  ds_write_b32 v1, v0
.endif
  s_waitcnt lgkmcnt(0)
kernel_end
