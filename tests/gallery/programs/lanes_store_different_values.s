// All lanes of a store have the same address, but different values
// report: lanes_store_different
// severity: warning
// at: global_store_dword
// message: than lane 0 does
.include "kernel.inc"

kernel_begin
  arguments
  v_mov_b32_e32 v3, 0
.if BUG
  global_store_dword v3, v0, s[4:5]
.else
  v_mov_b32_e32 v4, 7
  global_store_dword v3, v4, s[4:5]
.endif
kernel_end
