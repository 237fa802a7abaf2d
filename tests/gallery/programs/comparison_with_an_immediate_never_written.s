// A scalar that was never written is compared with an unsigned immediate of 16 bits, and the result decides a branch
// report: register_uninitialised
// at: s_cbranch_scc1
// other: s_cmpk_lg_u32
.include "kernel.inc"

kernel_begin
.if !BUG
  s_mov_b32 s20, 7
.endif
  s_cmpk_lg_u32 s20, 0xd431
  s_cbranch_scc1 past
  s_nop 0
past:
kernel_end
