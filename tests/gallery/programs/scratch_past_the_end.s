// A lane stores beyond its own scratch
// report: scratch_out_of_bounds
// at: scratch_store_dword
.include "kernel.inc"

kernel_begin
  v_mov_b32_e32 v3, 0
.if BUG
  scratch_store_dword off, v3, off offset:64
.else
  scratch_store_dword off, v3, off offset:60
.endif
  s_waitcnt vmcnt(0)
kernel_end scratch=64
