// A return from a trap handler, which code of a kernel cannot execute
// report: unknown_instruction
// at: s_rfe_b64
.include "kernel.inc"

kernel_begin
.if BUG
  s_rfe_b64 s[2:3]
.endif
kernel_end
