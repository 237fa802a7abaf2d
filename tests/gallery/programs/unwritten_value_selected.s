// One of two values was never written, and the mask selects it; in the twin every lane selects the other
// report: register_uninitialised
// at: global_store_dword v1, v3
// other: v_cndmask_b32_e32 v3
.include "kernel.inc"

kernel_begin
  arguments
.if BUG
  s_mov_b64 vcc, 0
.else
  s_mov_b64 vcc, -1
.endif
  s_nop 4
  v_cndmask_b32_e32 v3, v20, v1, vcc
  global_store_dword v1, v3, s[4:5]
kernel_end
