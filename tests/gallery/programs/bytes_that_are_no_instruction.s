// A wave arrives at bytes that no instruction has
// report: unknown_instruction
// at: bytes ff ff ff ff
.include "kernel.inc"

kernel_begin
.if !BUG
  s_branch .Lout
.endif
.long 0xffffffff
.Lout:
kernel_end
