// with_exceptions(): asks for exceptions, for which the machine has no trap handler.

  .amdgcn_target "amdgcn-amd-amdhsa--gfx942"
  .text
  .globl with_exceptions
  .protected with_exceptions
  .p2align 8
  .type with_exceptions,@function
with_exceptions:
  s_endpgm
.Lend:
  .size with_exceptions, .Lend-with_exceptions

  .rodata
  .p2align 6
  .amdhsa_kernel with_exceptions
    .amdhsa_next_free_vgpr 8
    .amdhsa_next_free_sgpr 16
    .amdhsa_accum_offset 8
    .amdhsa_exception_fp_ieee_invalid_op 1
  .end_amdhsa_kernel
