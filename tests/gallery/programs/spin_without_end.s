// A loop that never ends
// report: budget_exhausted
// at: s_branch
.include "kernel.inc"

kernel_begin
.if BUG
  s_nop 0
again:
  s_branch again
.endif
kernel_end
