// Two waves store the same value to the same dword of LDS unordered, as compiled code does with uniform values
// report: lds_equal_stores
// severity: note
// at: ds_write_b32
// other: ds_write_b32
// launch: waves=2
.include "kernel.inc"

kernel_begin
  arguments
  v_mbcnt_lo_u32_b32 v3, -1, 0
  v_mbcnt_hi_u32_b32 v3, -1, v3
  v_lshlrev_b32_e32 v3, 2, v3
.if !BUG
  s_cmp_lg_u32 s10, 0
  s_cbranch_scc1 .Lstored
.endif
  ds_write_b32 v3, v3
  s_waitcnt lgkmcnt(0)
.Lstored:
  s_barrier
  ds_read_b32 v4, v3
  s_waitcnt lgkmcnt(0)
kernel_end
