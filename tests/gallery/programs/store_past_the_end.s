// A store one element past the end of its allocation
// report: global_out_of_bounds
// at: global_store_dword
.include "kernel.inc"

kernel_begin
  arguments
.if BUG
  v_or_b32_e32 v3, 0xff04, v1
.else
  v_or_b32_e32 v3, 0xff00, v1
.endif
  v_mov_b32_e32 v4, 0
.if BUG
  v_add_u32_e32 v3, 4, v3
.endif
  global_store_dword v3, v4, s[4:5]
kernel_end
