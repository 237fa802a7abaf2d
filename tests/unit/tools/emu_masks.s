// Kernels for which the emulator's command line prints warnings, and one that never ends.
//
//   masks()    three comparisons that are the mask of the next instruction
//   waits()    an s_nop larger than needed, and one that is not needed
//   endless()  a loop that never ends

  .amdgcn_target "amdgcn-amd-amdhsa--gfx942"
  .text

.include "emu_kernel.inc"

begin masks
.rept 3
  v_cmp_eq_u32_e32 vcc, 0, v0
  v_cndmask_b32_e32 v1, v0, v0, vcc
.endr
end masks, 0

begin waits
  v_mov_b32_e32 v2, 0
  s_nop 4
  v_readfirstlane_b32 s4, v2
  s_nop 0
  s_mov_b32 s5, s4
end waits, 0

begin endless
.Lagain:
  s_branch .Lagain
end endless, 0
