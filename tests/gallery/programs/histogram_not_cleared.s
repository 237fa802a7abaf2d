// An atomic adds to memory that was never cleared
// report: memory_uninitialised
// at: global_atomic_add
.include "kernel.inc"

kernel_begin
  arguments
  v_mov_b32_e32 v3, 1
.if BUG
  global_atomic_add v1, v3, s[6:7]
.else
  global_atomic_add v1, v3, s[8:9]
.endif
  s_waitcnt vmcnt(0)
kernel_end
