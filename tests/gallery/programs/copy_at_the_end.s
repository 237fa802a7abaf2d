// The wave ends while its copy into LDS is in flight: the copy lands in another workgroup's LDS
// report: lds_copy_at_end
// at: buffer_load_dword
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
kernel_end
