// Two copies into LDS are in flight, and the wait lets the one that is read stay there
// report: lds_race
// at: ds_read_b32 v3, v1 offset:256
// other: buffer_load_dword
.include "kernel.inc"

kernel_begin
  arguments
  data_resource
  s_mov_b32 m0, 0
  s_nop 0
  buffer_load_dword v1, s[12:15], 0 offen lds
  s_movk_i32 m0, 0x100
  s_nop 0
  buffer_load_dword v1, s[12:15], 0 offen lds
  s_waitcnt vmcnt(1)
  ds_read_b32 v4, v1
.if !BUG
  s_waitcnt vmcnt(0)
.endif
  ds_read_b32 v3, v1 offset:256
  s_waitcnt vmcnt(0) lgkmcnt(0)
  global_store_dword v1, v3, s[4:5]
kernel_end
