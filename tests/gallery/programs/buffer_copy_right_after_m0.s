// M0 is written right before a buffer is copied into LDS: the manual's rows on M0 do not name that instruction
// report: hazard
// level: waived
// severity: warning
// at: buffer_load_dword
// other: s_movk_i32 m0
.include "kernel.inc"

kernel_begin
  arguments
  data_resource
  s_movk_i32 m0, 0x100
.if !BUG
  s_nop 0
.endif
  buffer_load_dword v1, s[12:15], 0 offen lds
  s_waitcnt vmcnt(0)
kernel_end
