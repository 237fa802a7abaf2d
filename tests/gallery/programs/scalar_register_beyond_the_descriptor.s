// The descriptor grants 48 scalar registers, and the program uses s48
// report: register_out_of_range
// at: s_mov_b32 s48
// message: uses s48,
.include "kernel.inc"

kernel_begin
.if BUG
  s_mov_b32 s48, 0
.else
  s_mov_b32 s47, 0
.endif
kernel_end
