// Two waves write the same bytes of LDS; in the twin these are neighbours, within one dword
// report: lds_race
// at: ds_write_b8
// other: ds_write_b8
// launch: waves=2
.include "kernel.inc"

kernel_begin
  arguments
  v_and_b32_e32 v3, 63, v0
.if !BUG
  v_lshl_add_u32 v3, v3, 1, v2
.endif
  ds_write_b8 v3, v2
  s_waitcnt lgkmcnt(0)
kernel_end
