// A wait leaves one load in flight: not the flat load that was first, but the one after it
// report: pending_register
// at: v_mov_b32_e32 v7, v6
// other: global_load_dword v6
.include "kernel.inc"

kernel_begin
  arguments
  v_mov_b32_e32 v5, s5
  v_add_co_u32_e32 v4, vcc, s4, v1
  s_nop 1
  v_addc_co_u32_e32 v5, vcc, 0, v5, vcc
  flat_load_dword v3, v[4:5]
  global_load_dword v6, v1, s[4:5]
  s_waitcnt vmcnt(1) lgkmcnt(0)
.if BUG
  v_mov_b32_e32 v7, v6
.else
  v_mov_b32_e32 v7, v3
.endif
  s_waitcnt vmcnt(0)
kernel_end
