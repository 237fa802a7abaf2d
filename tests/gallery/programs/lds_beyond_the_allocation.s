// The last lane writes beyond the workgroup's LDS
// report: lds_out_of_bounds
// at: ds_write_b64
// lane: 63
// message: accesses LDS bytes 1024 to 1031,
.include "kernel.inc"

kernel_begin
  arguments
  v_lshlrev_b32_e32 v3, 4, v0
.if BUG
  v_add_u32_e32 v3, 8, v3
.endif
  v_mov_b32_e32 v4, 0
  v_mov_b32_e32 v5, 0
  ds_write_b64 v3, v[4:5] offset:8
  s_waitcnt lgkmcnt(0)
kernel_end
