// many_hazards(): at 1030 places a mask is used too early, at the last one M0 is.

  .amdgcn_target "amdgcn-amd-amdhsa--gfx942"
  .text
  .globl many_hazards
  .protected many_hazards
  .p2align 8
  .type many_hazards,@function
many_hazards:
  .rept 1030
  v_cmp_eq_u32_e32 vcc, 0, v0
  v_cndmask_b32_e32 v1, v0, v0, vcc
  .endr
  s_movk_i32 m0, 0x1
  s_ttracedata
  s_endpgm
.Lend:
  .size many_hazards, .Lend-many_hazards

  .rodata
  .p2align 6
  .amdhsa_kernel many_hazards
    .amdhsa_next_free_vgpr 8
    .amdhsa_next_free_sgpr 16
    .amdhsa_accum_offset 8
  .end_amdhsa_kernel
