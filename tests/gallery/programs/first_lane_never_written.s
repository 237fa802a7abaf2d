// The first lane of a register that was never written decides a branch
// report: register_uninitialised
// at: s_cbranch_scc1
// other: v_readfirstlane_b32
.include "kernel.inc"

kernel_begin
  arguments
.if !BUG
  v_mov_b32_e32 v20, 0
  s_nop 0
.endif
  v_readfirstlane_b32 s16, v20
  s_cmp_lg_u32 s16, 0
  s_cbranch_scc1 done
done:
kernel_end
