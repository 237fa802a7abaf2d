// A kernel as written by hand for a host that fills a structure: each argument has 16 bytes, and the metadata calls
// the rest of them padding. One workgroup of 64 work-items.
//
//   padded(y, x, factor)   y[i] = factor * x[i] for 64 floats
//   unlisted               the same without metadata and without a size of its arguments

  .amdgcn_target "amdgcn-amd-amdhsa--gfx942"

.macro kernel name, bytes
  .text
  .globl \name
  .protected \name
  .p2align 8
  .type \name,@function
\name:
  s_load_dwordx2 s[4:5], s[0:1], 0x0
  s_load_dwordx2 s[6:7], s[0:1], 0x10
  s_load_dword s8, s[0:1], 0x20
  v_lshlrev_b32_e32 v0, 2, v0
  s_waitcnt lgkmcnt(0)
  global_load_dword v1, v0, s[6:7]
  s_waitcnt vmcnt(0)
  v_mul_f32_e32 v1, s8, v1
  global_store_dword v0, v1, s[4:5]
  s_endpgm
.L\name\()_end:
  .size \name, .L\name\()_end-\name

  .rodata
  .p2align 6
  .amdhsa_kernel \name
    .amdhsa_kernarg_size \bytes
    .amdhsa_user_sgpr_kernarg_segment_ptr 1
    .amdhsa_next_free_vgpr 2
    .amdhsa_next_free_sgpr 16
    .amdhsa_accum_offset 4
  .end_amdhsa_kernel
.endm

  kernel padded, 48
  kernel unlisted, 0

  .amdgpu_metadata
amdhsa.version:
  - 1
  - 2
amdhsa.target: amdgcn-amd-amdhsa--gfx942
amdhsa.kernels:
  - .name: padded
    .symbol: padded.kd
    .kernarg_segment_size: 48
    .group_segment_fixed_size: 0
    .private_segment_fixed_size: 0
    .kernarg_segment_align: 16
    .wavefront_size: 64
    .sgpr_count: 16
    .vgpr_count: 2
    .max_flat_workgroup_size: 64
    .args:
      - {.name: y, .size: 8, .offset: 0, .value_kind: global_buffer, .address_space: global}
      - {.name: pad0, .size: 4, .offset: 8, .value_kind: by_value}
      - {.name: pad1, .size: 4, .offset: 12, .value_kind: by_value}
      - {.name: x, .size: 8, .offset: 16, .value_kind: global_buffer, .address_space: global}
      - {.name: pad2, .size: 4, .offset: 24, .value_kind: by_value}
      - {.name: pad3, .size: 4, .offset: 28, .value_kind: by_value}
      - {.name: factor, .size: 4, .offset: 32, .value_kind: by_value}
      - {.name: pad4, .size: 4, .offset: 36, .value_kind: by_value}
      - {.name: pad5, .size: 4, .offset: 40, .value_kind: by_value}
      - {.name: pad6, .size: 4, .offset: 44, .value_kind: by_value}
  .end_amdgpu_metadata
