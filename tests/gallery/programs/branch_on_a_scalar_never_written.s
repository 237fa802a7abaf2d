// A branch depends on a scalar register that was never written
// report: register_uninitialised
// at: s_cbranch_scc1
// other: s_cmp_eq_u32
.include "kernel.inc"

kernel_begin
.if !BUG
  s_mov_b32 s20, 1
.endif
  s_cmp_eq_u32 s20, 0
  s_cbranch_scc1 .Lout
.Lout:
kernel_end
