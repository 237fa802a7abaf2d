// A kernel with room for code: tests put their own instructions there. `slot` may use every register, `small`
// is the same code with few. Arguments: s[0:1]; workgroup id: s2, s3, s4; work-item: v0. `preloaded` gets its
// arguments in s2 to s5, and writes s4 to where s[2:3] points.

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

  .globl preloaded
  .protected preloaded
  .p2align 8
  .type preloaded,@function
preloaded:
  // For firmware that does not preload; the machine enters after these 256 bytes.
  s_trap 2
  .fill 63, 4, 0xbf800000 // s_nop 0
  v_mov_b32_e32 v1, 0
  v_mov_b32_e32 v2, s4
  s_nop 4
  global_store_dword v1, v2, s[2:3]
  s_endpgm
.Lpreloaded_end:
  .size preloaded, .Lpreloaded_end-preloaded

  .rodata
  .p2align 6
  .amdhsa_kernel preloaded
    .amdhsa_kernarg_size 64
    .amdhsa_user_sgpr_kernarg_segment_ptr 1
    .amdhsa_user_sgpr_kernarg_preload_length 4
    .amdhsa_user_sgpr_kernarg_preload_offset 2
    .amdhsa_next_free_vgpr 8
    .amdhsa_next_free_sgpr 16
    .amdhsa_accum_offset 4
  .end_amdhsa_kernel
  .p2align 6
  .amdhsa_kernel slot
    .amdhsa_kernarg_size 64
    .amdhsa_user_sgpr_kernarg_segment_ptr 1
    .amdhsa_system_sgpr_workgroup_id_x 1
    .amdhsa_system_sgpr_workgroup_id_y 1
    .amdhsa_system_sgpr_workgroup_id_z 1
    .amdhsa_system_vgpr_workitem_id 2
    .amdhsa_private_segment_fixed_size 256
    .amdhsa_enable_private_segment 1
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
