// Two kernels, a variable, and words that hold addresses, which a loader must relocate.
//
//   fill(int *out, int value, int count)   out[i] = value + i for i < count
//   nothing()                              no arguments

  .amdgcn_target "amdgcn-amd-amdhsa--gfx942"
  .text

  .globl fill
  .protected fill
  .p2align 8
  .type fill,@function
fill:
  s_load_dwordx4 s[4:7], s[0:1], 0x0
  s_lshl_b32 s8, s2, 6
  v_add_u32_e32 v0, s8, v0
  s_waitcnt lgkmcnt(0)
  v_cmp_gt_i32_e32 vcc, s7, v0
  s_and_saveexec_b64 s[8:9], vcc
  s_cbranch_execz .Lfill_end
  v_add_u32_e32 v1, s6, v0
  v_lshlrev_b32_e32 v2, 2, v0
  global_store_dword v2, v1, s[4:5]
.Lfill_end:
  s_endpgm
.Lfill_size:
  .size fill, .Lfill_size-fill

  .globl nothing
  .protected nothing
  .p2align 8
  .type nothing,@function
nothing:
  s_endpgm
.Lnothing_size:
  .size nothing, .Lnothing_size-nothing

  .rodata
  .p2align 6
  .amdhsa_kernel fill
    .amdhsa_group_segment_fixed_size 1024
    .amdhsa_kernarg_size 24
    .amdhsa_user_sgpr_kernarg_segment_ptr 1
    .amdhsa_system_sgpr_workgroup_id_x 1
    .amdhsa_next_free_vgpr 3
    .amdhsa_next_free_sgpr 16
    .amdhsa_accum_offset 4
  .end_amdhsa_kernel
  .p2align 6
  .amdhsa_kernel nothing
    .amdhsa_next_free_vgpr 200
    .amdhsa_next_free_sgpr 16
    .amdhsa_accum_offset 128
  .end_amdhsa_kernel

  .data
  .globl counter
  .type counter,@object
  .size counter, 4
  .p2align 3
counter:
  .long 0x12345678
  .long 0
  .globl pointer_to_counter
  .protected pointer_to_counter
  .type pointer_to_counter,@object
  .size pointer_to_counter, 16
pointer_to_counter:
  .quad counter + 4
  .quad pointer_to_counter

  .amdgpu_metadata
---
amdhsa.kernels:
  - .name: fill
    .symbol: fill.kd
    .kernarg_segment_size: 24
    .kernarg_segment_align: 8
    .group_segment_fixed_size: 1024
    .private_segment_fixed_size: 0
    .wavefront_size: 64
    .sgpr_count: 22
    .vgpr_count: 3
    .agpr_count: 0
    .sgpr_spill_count: 0
    .vgpr_spill_count: 0
    .max_flat_workgroup_size: 256
    .args:
      - .name: out
        .offset: 0
        .size: 8
        .value_kind: global_buffer
        .address_space: global
      - .name: value
        .offset: 8
        .size: 4
        .value_kind: by_value
      - .name: count
        .offset: 12
        .size: 4
        .value_kind: by_value
      - .offset: 16
        .size: 4
        .value_kind: hidden_block_count_x
  - .name: nothing
    .symbol: nothing.kd
    .kernarg_segment_size: 0
    .kernarg_segment_align: 4
    .group_segment_fixed_size: 0
    .private_segment_fixed_size: 0
    .wavefront_size: 64
    .sgpr_count: 22
    .vgpr_count: 200
    .agpr_count: 72
    .max_flat_workgroup_size: 1024
amdhsa.target: amdgcn-amd-amdhsa--gfx942
amdhsa.version:
  - 1
  - 2
...
  .end_amdgpu_metadata
