// A scalar load of four dwords has two of them past the end of its allocation
// report: global_out_of_bounds
// at: s_load_dwordx4
.include "kernel.inc"

kernel_begin
  arguments
.if BUG
  s_load_dwordx4 s[16:19], s[4:5], 0xfff8
.else
  s_load_dwordx4 s[16:19], s[4:5], 0xfff0
.endif
  s_waitcnt lgkmcnt(0)
kernel_end
