// A value is read from scratch that was not written, and stored
// report: register_uninitialised
// at: global_store_dword
// other: scratch_load_dword
.include "kernel.inc"

kernel_begin
  arguments
.if !BUG
  scratch_store_dword off, v0, off
.endif
  scratch_load_dword v3, off, off
  s_waitcnt vmcnt(0)
  global_store_dword v1, v3, s[4:5]
kernel_end scratch=64
