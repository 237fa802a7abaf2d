// Stores the arguments that the runtime adds: out[0..2] = workgroups in x, work-items of a workgroup in x
// (16 bits), dynamic LDS bytes. Only the first workgroup stores. The kernel's own argument comes before them.

  .amdgcn_target "amdgcn-amd-amdhsa--gfx942"
  .text
  .globl hidden
  .protected hidden
  .p2align 8
  .type hidden,@function
hidden:
  s_cmp_lg_u32 s2, 0
  s_cbranch_scc1 .Lothers
  s_load_dwordx2 s[4:5], s[0:1], 0x0
  s_load_dwordx2 s[6:7], s[0:1], 0x8
  s_load_dword s8, s[0:1], 0x10
  s_waitcnt lgkmcnt(0)
  s_and_b32 s7, s7, 0xffff
  v_mov_b32_e32 v0, 0
  v_mov_b32_e32 v2, s6
  v_mov_b32_e32 v3, s7
  v_mov_b32_e32 v4, s8
  global_store_dwordx3 v0, v[2:4], s[4:5]
.Lothers:
  s_endpgm
.Lend:
  .size hidden, .Lend-hidden

  .rodata
  .p2align 6
  .amdhsa_kernel hidden
    .amdhsa_user_sgpr_kernarg_segment_ptr 1
    .amdhsa_next_free_vgpr 8
    .amdhsa_next_free_sgpr 16
    .amdhsa_accum_offset 8
    .amdhsa_kernarg_size 20
  .end_amdhsa_kernel

  .amdgpu_metadata
---
amdhsa.kernels:
  - .name: hidden
    .symbol: hidden.kd
    .kernarg_segment_size: 20
    .kernarg_segment_align: 8
    .group_segment_fixed_size: 0
    .private_segment_fixed_size: 0
    .wavefront_size: 64
    .sgpr_count: 22
    .vgpr_count: 8
    .agpr_count: 0
    .max_flat_workgroup_size: 1024
    .args:
      - .name: out
        .offset: 0
        .size: 8
        .value_kind: global_buffer
        .address_space: global
      - .offset: 8
        .size: 4
        .value_kind: hidden_block_count_x
      - .offset: 12
        .size: 2
        .value_kind: hidden_group_size_x
      - .offset: 14
        .size: 2
        .value_kind: hidden_group_size_y
      - .offset: 16
        .size: 4
        .value_kind: hidden_dynamic_lds_size
amdhsa.target: amdgcn-amd-amdhsa--gfx942
amdhsa.version:
  - 1
  - 2
...
  .end_amdgpu_metadata
