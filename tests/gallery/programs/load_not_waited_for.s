// A value is used without a wait for its load
// report: pending_register
// at: v_add_u32_e32 v3
// other: global_load_dword v3
.include "kernel.inc"

kernel_begin
  arguments
  global_load_dword v3, v1, s[4:5]
.if !BUG
  s_waitcnt vmcnt(0)
.endif
  v_add_u32_e32 v3, 1, v3
  s_waitcnt vmcnt(0)
  global_store_dword v1, v3, s[4:5]
kernel_end
