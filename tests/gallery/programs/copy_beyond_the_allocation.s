// A copy from memory ends beyond the workgroup's LDS
// report: lds_out_of_bounds
// at: buffer_load_dword
// launch: lds=256
.include "kernel.inc"

kernel_begin
  arguments
  data_resource
.if BUG
  s_movk_i32 m0, 0x80
.else
  s_mov_b32 m0, 0
.endif
  s_nop 0
  buffer_load_dword v1, s[12:15], 0 offen lds
  s_waitcnt vmcnt(0)
kernel_end
