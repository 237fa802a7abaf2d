// copy_words(out, in): each of 64 work-items copies a dword.

  .amdgcn_target "amdgcn-amd-amdhsa--gfx942"
  .text
  .globl copy_words
  .protected copy_words
  .p2align 8
  .type copy_words,@function
copy_words:
  s_load_dwordx4 s[4:7], s[0:1], 0x0
  v_lshlrev_b32_e32 v0, 2, v0
  s_waitcnt lgkmcnt(0)
  global_load_dword v1, v0, s[6:7]
  s_waitcnt vmcnt(0)
  global_store_dword v0, v1, s[4:5]
  s_endpgm
.Lend:
  .size copy_words, .Lend-copy_words

  .rodata
  .p2align 6
  .amdhsa_kernel copy_words
    .amdhsa_user_sgpr_kernarg_segment_ptr 1
    .amdhsa_next_free_vgpr 8
    .amdhsa_next_free_sgpr 16
    .amdhsa_accum_offset 8
    .amdhsa_kernarg_size 16
  .end_amdhsa_kernel

  .amdgpu_metadata
---
amdhsa.version: [1, 2]
amdhsa.kernels:
  - .name: copy_words
    .symbol: copy_words.kd
    .kernarg_segment_size: 16
    .kernarg_segment_align: 8
    .group_segment_fixed_size: 0
    .private_segment_fixed_size: 0
    .wavefront_size: 64
    .sgpr_count: 16
    .vgpr_count: 8
    .max_flat_workgroup_size: 64
    .args:
      - {.offset: 0, .size: 8, .value_kind: global_buffer, .address_space: global}
      - {.offset: 8, .size: 8, .value_kind: global_buffer, .address_space: global}
...
  .end_amdgpu_metadata
