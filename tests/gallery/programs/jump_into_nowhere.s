// A jump through a register that does not hold the address of an instruction
// report: invalid_pc
// at: s_setpc_b64
.include "kernel.inc"

kernel_begin
.if BUG
  s_mov_b64 s[4:5], 0
.else
  s_getpc_b64 s[4:5]
origin:
  s_add_u32 s4, s4, next-origin
  s_addc_u32 s5, s5, 0
.endif
  s_setpc_b64 s[4:5]
next:
kernel_end
