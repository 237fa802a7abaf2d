// The descriptor grants eight accumulation registers, and the program uses a8
// report: register_out_of_range
// at: v_accvgpr_write_b32 a8
// message: uses a8,
.include "kernel.inc"

kernel_begin
.if BUG
  v_accvgpr_write_b32 a8, 1
.else
  v_accvgpr_write_b32 a7, 1
.endif
kernel_end vgprs=24, accum=16
