// A lane reads LDS beyond what was written, and the value is thrown away
// report: none
.include "kernel.inc"

kernel_begin
  arguments
  ds_write_b32 v1, v0
  s_waitcnt lgkmcnt(0)
  ds_read_b32 v3, v1 offset:4
  v_cmp_gt_u32_e32 vcc, 63, v0
  v_mov_b32_e32 v4, 0
  s_waitcnt lgkmcnt(0)
  v_cndmask_b32_e32 v3, v4, v3, vcc
  global_store_dword v1, v3, s[4:5]
kernel_end
