// A kernel with room for code: tests put their own instructions there. `slot` may use every register, `small`
// is the same code with few. Arguments: s[0:1]; workgroup id: s2, s3, s4; work-item: v0.

  .amdgcn_target "amdgcn-amd-amdhsa--gfx942"
  .text
  .globl slot
  .protected slot
  .globl small
  .protected small
  .p2align 8
  .type slot,@function
  .type small,@function
slot:
small:
  .rept 2048
  s_endpgm
  .endr
.Lend:
  .size slot, .Lend-slot
  .size small, .Lend-small

  .rodata
  .p2align 6
  .amdhsa_kernel slot
    .amdhsa_kernarg_size 64
    .amdhsa_user_sgpr_kernarg_segment_ptr 1
    .amdhsa_system_sgpr_workgroup_id_x 1
    .amdhsa_system_sgpr_workgroup_id_y 1
    .amdhsa_system_sgpr_workgroup_id_z 1
    .amdhsa_system_vgpr_workitem_id 2
    .amdhsa_private_segment_fixed_size 256
    .amdhsa_next_free_vgpr 512
    .amdhsa_next_free_sgpr 96
    .amdhsa_accum_offset 256
  .end_amdhsa_kernel
  .p2align 6
  .amdhsa_kernel small
    .amdhsa_kernarg_size 64
    .amdhsa_user_sgpr_kernarg_segment_ptr 1
    .amdhsa_system_sgpr_workgroup_id_x 1
    .amdhsa_next_free_vgpr 24
    .amdhsa_next_free_sgpr 32
    .amdhsa_accum_offset 16
  .end_amdhsa_kernel
