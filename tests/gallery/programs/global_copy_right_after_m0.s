// M0 is written right before memory is copied into LDS by an instruction that the manual's rows on M0 name
// report: hazard
// level: required
// at: global_load_lds_dword
// other: s_movk_i32 m0
.include "kernel.inc"

kernel_begin
  arguments
  s_movk_i32 m0, 0x100
.if !BUG
  s_nop 0
.endif
  global_load_lds_dword v1, s[4:5]
  s_waitcnt vmcnt(0)
kernel_end
