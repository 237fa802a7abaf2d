// Both vmcnt and lgkmcnt count a flat load, and the wait asks only lgkmcnt
// report: pending_register
// at: v_mov_b32_e32 v6
// other: flat_load_dword
.include "kernel.inc"

kernel_begin
  arguments
  v_mov_b32_e32 v5, s5
  v_add_co_u32_e32 v4, vcc, s4, v1
  s_nop 1
  v_addc_co_u32_e32 v5, vcc, 0, v5, vcc
  flat_load_dword v3, v[4:5]
  s_waitcnt lgkmcnt(0)
.if !BUG
  s_waitcnt vmcnt(0)
.endif
  v_mov_b32_e32 v6, v3
  s_waitcnt vmcnt(0)
kernel_end
