// An atomic on an address that is not a multiple of its size
// report: misaligned
// at: global_atomic_add
.include "kernel.inc"

kernel_begin
  arguments
  v_mov_b32_e32 v3, 1
.if BUG
  v_or_b32_e32 v1, 2, v1
.endif
  global_atomic_add v1, v3, s[8:9]
  s_waitcnt vmcnt(0)
kernel_end
