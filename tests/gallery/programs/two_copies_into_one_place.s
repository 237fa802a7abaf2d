// Two copies of a wave into the same bytes of LDS are in no order
// report: lds_race
// at: buffer_load_dword
// other: buffer_load_dword
.include "kernel.inc"

kernel_begin
  arguments
  data_resource
  s_mov_b32 m0, 0
  s_nop 0
  buffer_load_dword v1, s[12:15], 0 offen lds
.if !BUG
  s_waitcnt vmcnt(0)
.endif
  buffer_load_dword v1, s[12:15], 0 offen lds
  s_waitcnt vmcnt(0)
kernel_end
