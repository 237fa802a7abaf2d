// A second load into a register follows the first in order, so one wait is enough for both
// report: none
.include "kernel.inc"

kernel_begin
  arguments
  global_load_dword v3, v1, s[4:5]
  global_load_dword v3, v1, s[4:5] offset:4
  s_waitcnt vmcnt(0)
  v_mov_b32_e32 v4, v3
kernel_end
