// A function saves its caller's registers to scratch, written or not
// report: none
.include "kernel.inc"

kernel_begin
  scratch_store_dword off, v9, off
kernel_end scratch=64
