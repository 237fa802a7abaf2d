// A vote of the wave counts lanes whose value was never written
// report: register_uninitialised
// at: s_cbranch_scc1
// other: v_cmp_gt_u32_e64
.include "kernel.inc"

kernel_begin
  arguments
.if !BUG
  v_mov_b32_e32 v20, 0
.endif
  v_cmp_gt_u32_e64 s[16:17], 32, v20
  s_bcnt1_i32_b64 s18, s[16:17]
  s_cmp_gt_u32 s18, 16
  s_cbranch_scc1 done
done:
kernel_end
