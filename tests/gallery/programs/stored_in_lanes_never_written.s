// A register was written in eight lanes, and is stored in all
// report: register_uninitialised
// at: global_store_dword v1, v3
.include "kernel.inc"

kernel_begin
  arguments
  s_mov_b64 exec, 0xff
  v_mov_b32_e32 v3, 1
.if BUG
  s_mov_b64 exec, -1
.endif
  global_store_dword v1, v3, s[4:5]
kernel_end
