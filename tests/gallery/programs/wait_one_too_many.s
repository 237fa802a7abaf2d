// Two loads are in flight, and the wait lets one too many stay in flight
// report: pending_register
// at: v_add_u32_e32 v5
// other: global_load_dword v4
.include "kernel.inc"

kernel_begin
  arguments
  global_load_dword v3, v1, s[4:5]
  global_load_dword v4, v1, s[4:5] offset:4
.if BUG
  s_waitcnt vmcnt(1)
.else
  s_waitcnt vmcnt(0)
.endif
  v_add_u32_e32 v5, v3, v4
  s_waitcnt vmcnt(0)
kernel_end
