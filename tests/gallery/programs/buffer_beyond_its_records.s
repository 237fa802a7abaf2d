// A buffer is one element shorter than the read: the last lane gets 0
// report: buffer_out_of_range
// at: buffer_load_dword
.include "kernel.inc"

kernel_begin
  arguments
  data_resource
.if BUG
  s_movk_i32 s14, 63 * 4
.endif
  buffer_load_dword v3, v1, s[12:15], 0 offen
  s_waitcnt vmcnt(0)
kernel_end
