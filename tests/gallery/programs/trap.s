// A trap of number 2 ends the program; in the twin, the trap of number 3 does not
// report: trap
// at: s_trap 2
.include "kernel.inc"

kernel_begin
.if BUG
  s_trap 2
.else
  s_trap 3
.endif
kernel_end
