// Only vmcnt counts a load that follows a flat store
// report: none
.include "kernel.inc"

kernel_begin
  arguments
  v_mov_b32_e32 v5, s5
  v_add_co_u32_e32 v4, vcc, s4, v1
  s_nop 1
  v_addc_co_u32_e32 v5, vcc, 0, v5, vcc
  flat_store_dword v[4:5], v1
  global_load_dword v3, v1, s[4:5] offset:1024
  s_waitcnt vmcnt(0)
  v_mov_b32_e32 v6, v3
  s_waitcnt lgkmcnt(0)
kernel_end
