// A copy from memory into LDS is counted by vmcnt, not lgkmcnt
// report: lds_race
// at: ds_read_b32
// other: buffer_load_dword
// lane: 0
// message: reads LDS byte 0,
.include "kernel.inc"

kernel_begin
  arguments
  data_resource
  s_mov_b32 m0, 0
  s_nop 0
  buffer_load_dword v1, s[12:15], 0 offen lds
.if BUG
  s_waitcnt lgkmcnt(0)
.else
  s_waitcnt vmcnt(0)
.endif
  ds_read_b32 v3, v1
  s_waitcnt vmcnt(0) lgkmcnt(0)
  global_store_dword v1, v3, s[4:5]
kernel_end
