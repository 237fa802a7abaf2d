// The last lane loads the dword that follows its allocation; in the twin, the last dword in it
// report: global_out_of_bounds
// at: global_load_dword
// lane: 63
// message: 65536 bytes after the start of a block of 65536 bytes
.include "kernel.inc"

kernel_begin
  arguments
.if BUG
  s_add_u32 s4, s4, 0xff04
.else
  s_add_u32 s4, s4, 0xff00
.endif
  s_addc_u32 s5, s5, 0
  global_load_dword v3, v1, s[4:5]
  s_waitcnt vmcnt(0)
kernel_end
