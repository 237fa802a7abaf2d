// LDS is filled from uninitialised memory, and then read
// report: lds_uninitialised
// at: ds_read_b32
// other: buffer_load_dword
.include "kernel.inc"

kernel_begin
  arguments
  data_resource
.if BUG
  s_mov_b32 s12, s6
  s_mov_b32 s13, s7
.endif
  s_mov_b32 m0, 0
  s_nop 4
  buffer_load_dword v1, s[12:15], 0 offen lds
  s_waitcnt vmcnt(0)
  ds_read_b32 v3, v1
  s_waitcnt lgkmcnt(0)
  global_store_dword v1, v3, s[4:5]
kernel_end
