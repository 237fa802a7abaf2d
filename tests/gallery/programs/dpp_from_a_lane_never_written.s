// DPP moves a value from a lane that has not written it
// report: register_uninitialised
// at: global_store_dword
// other: v_mov_b32_dpp
// lane: 7
.include "kernel.inc"

kernel_begin
  arguments
  v_cmp_gt_u32_e32 vcc, 8, v0
  v_mov_b32_e32 v4, 0
.if BUG
  s_and_saveexec_b64 s[16:17], vcc
.else
  s_mov_b64 s[16:17], exec
.endif
  v_mov_b32_e32 v3, v0
  s_mov_b64 exec, s[16:17]
  s_nop 4
  v_mov_b32_dpp v4, v3 row_shl:1 row_mask:0xf bank_mask:0xf
  s_mov_b64 exec, 0xff
  global_store_dword v1, v4, s[4:5]
kernel_end
