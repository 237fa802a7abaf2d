// LDS is read before it is written: it is undefined when a workgroup starts
// report: lds_uninitialised
// at: ds_read_b32
// lane: 0
.include "kernel.inc"

kernel_begin
  arguments
.if !BUG
  v_mov_b32_e32 v3, 0
  ds_write_b32 v1, v3
  s_waitcnt lgkmcnt(0)
.endif
  ds_read_b32 v4, v1
  s_waitcnt lgkmcnt(0)
  global_store_dword v1, v4, s[4:5]
kernel_end
