// The descriptor grants 24 vector registers, and the program uses v24
// report: register_out_of_range
// at: v_mov_b32_e32 v24
// message: uses v24,
.include "kernel.inc"

kernel_begin
.if BUG
  v_mov_b32_e32 v24, 0
.else
  v_mov_b32_e32 v15, 0
.endif
kernel_end vgprs=24, accum=16
