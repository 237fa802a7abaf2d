// Kernel arguments may be read, but not written
// report: global_read_only
// at: global_store_dword
.include "kernel.inc"

kernel_begin
  arguments
  v_mov_b32_e32 v3, 0
  global_load_dword v4, v3, s[0:1]
  s_waitcnt vmcnt(0)
.if BUG
  global_store_dword v3, v3, s[0:1]
.else
  global_store_dword v3, v3, s[4:5]
.endif
kernel_end
