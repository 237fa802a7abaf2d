// A lane that was not written is read into a scalar and stored; in the twin it is another lane
// report: register_uninitialised
// at: global_store_dword
// other: v_readlane_b32
.include "kernel.inc"

kernel_begin
  arguments
  v_cmp_gt_u32_e32 vcc, 8, v0
  s_and_saveexec_b64 s[16:17], vcc
  v_mov_b32_e32 v3, 1
  s_or_b64 exec, exec, s[16:17]
.if BUG
  v_readlane_b32 s18, v3, 8
.else
  v_readlane_b32 s18, v3, 7
.endif
  s_nop 4
  v_mov_b32_e32 v4, s18
  global_store_dword v1, v4, s[4:5]
kernel_end
