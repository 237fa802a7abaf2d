// The last lane of each wave reads what the next wave stores, and the value is thrown away
// report: none
// launch: waves=3
.include "kernel.inc"

kernel_begin
  arguments
  v_and_b32_e32 v5, 63, v0
  v_cmp_gt_u32_e32 vcc, 63, v5
  v_mov_b32_e32 v4, 0
  s_movk_i32 s16, 3
next_round:
  ds_write_b32 v1, v0
  ds_read_b32 v3, v1 offset:4
  s_waitcnt lgkmcnt(0)
  v_cndmask_b32_e32 v3, v4, v3, vcc
  global_store_dword v1, v3, s[4:5]
  s_sub_u32 s16, s16, 1
  s_cmp_lg_u32 s16, 0
  s_cbranch_scc1 next_round
kernel_end
