// Half of each dword was written to LDS, and the whole is read
// report: lds_uninitialised
// at: ds_read_b32
.include "kernel.inc"

kernel_begin
  arguments
  ds_write_b16 v1, v0
  s_waitcnt lgkmcnt(0)
.if BUG
  ds_read_b32 v3, v1
.else
  ds_read_u16 v3, v1
.endif
  s_waitcnt lgkmcnt(0)
  global_store_dword v1, v3, s[4:5]
kernel_end
