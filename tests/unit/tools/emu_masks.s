// Kernels of which the command line of the emulator has warnings, and one that never ends.
//
//   masks()    three comparisons that are the mask of the next instruction
//   endless()  a loop that nothing ends

  .amdgcn_target "amdgcn-amd-amdhsa--gfx942"
  .text

.macro begin name
  .globl \name
  .protected \name
  .p2align 8
  .type \name,@function
\name:
.endm

.macro end name
  s_endpgm
.L\name\()_end:
  .size \name, .L\name\()_end-\name
  .section .rodata
  .p2align 6
  .amdhsa_kernel \name
    .amdhsa_next_free_vgpr 8
    .amdhsa_next_free_sgpr 8
    .amdhsa_accum_offset 8
  .end_amdhsa_kernel
  .text
.endm

begin masks
.rept 3
  v_cmp_eq_u32_e32 vcc, 0, v0
  v_cndmask_b32_e32 v1, v0, v0, vcc
.endr
end masks

begin endless
.Lagain:
  s_branch .Lagain
end endless
