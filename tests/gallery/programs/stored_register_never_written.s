// A register is stored that was never written
// report: register_uninitialised
// at: global_store_dword v1, v3
.include "kernel.inc"

kernel_begin
  arguments
.if !BUG
  v_mov_b32_e32 v3, 1
.endif
  global_store_dword v1, v3, s[4:5]
kernel_end
