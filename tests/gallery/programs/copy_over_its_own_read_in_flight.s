// A wave copies to where its own read of LDS is in flight: they are in no order
// report: lds_race
// at: buffer_load_dword
// other: ds_read_b32
.include "kernel.inc"

kernel_begin
  arguments
  data_resource
  s_mov_b32 m0, 0
  s_nop 0
  buffer_load_dword v1, s[12:15], 0 offen lds
  s_waitcnt vmcnt(0)
  ds_read_b32 v3, v1
.if !BUG
  s_waitcnt lgkmcnt(0)
.endif
  buffer_load_dword v1, s[12:15], 0 offen lds
  s_waitcnt vmcnt(0) lgkmcnt(0)
kernel_end
