// The mask of v_cndmask was never written
// report: register_uninitialised
// at: global_store_dword v1, v3
// other: v_cndmask_b32_e64 v3
.include "kernel.inc"

kernel_begin
  arguments
.if !BUG
  s_mov_b64 s[16:17], 0
.endif
  s_nop 4
  v_cndmask_b32_e64 v3, v0, v1, s[16:17]
  global_store_dword v1, v3, s[4:5]
kernel_end
