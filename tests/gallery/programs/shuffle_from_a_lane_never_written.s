// Each lane takes the value of the next, which half of them have not written
// report: register_uninitialised
// at: global_store_dword
// other: ds_bpermute_b32
// lane: 31
.include "kernel.inc"

kernel_begin
  arguments
  v_add_u32_e32 v5, 4, v1
  v_cmp_gt_u32_e32 vcc, 32, v0
.if BUG
  s_and_saveexec_b64 s[16:17], vcc
.else
  s_mov_b64 s[16:17], exec
.endif
  v_mov_b32_e32 v3, v0
  s_mov_b64 exec, s[16:17]
  ds_bpermute_b32 v4, v5, v3
  s_waitcnt lgkmcnt(0)
  s_mov_b64 exec, 0xffffffff
  global_store_dword v1, v4, s[4:5]
kernel_end
