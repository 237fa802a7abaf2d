// Instructions of every class in nested loops, so that counts can be written down by hand.

  .amdgcn_target "amdgcn-amd-amdhsa--gfx942"
  .text
  .globl loops
  .protected loops
  .p2align 8
  .type loops,@function
loops:
  s_load_dwordx2 s[4:5], s[0:1], 0x0
  s_mov_b32 s6, 3
  s_waitcnt lgkmcnt(0)
.Louter:
  s_mov_b32 s7, 4
  v_mfma_f32_16x16x16_f16 v[0:3], v[4:5], v[6:7], v[0:3]
.Linner:
  v_mfma_f32_32x32x8_f16 a[0:15], v[4:5], v[6:7], a[0:15]
  v_mfma_f32_32x32x8_f16 a[16:31], v[4:5], v[6:7], a[16:31]
  v_mfma_f32_32x32x16_fp8_fp8 a[0:15], v[4:5], v[6:7], a[0:15]
  v_exp_f32_e32 v8, v9
  v_rcp_f32_e64 v8, -v9
  v_mul_f32_e32 v10, v11, v12
  v_fma_f32 v10, v11, v12, v13
  v_pk_mul_f32 v[10:11], v[12:13], v[14:15]
  v_pk_mul_f16 v10, v11, v12
  v_accvgpr_read_b32 v16, a0
  ds_read_b128 v[20:23], v24
  ds_write_b64 v24, v[20:21]
  ds_bpermute_b32 v25, v24, v20
  buffer_load_dword v26, s[8:11], 0 offen lds
  global_load_lds_dword v[26:27], off
  global_load_dwordx4 v[28:31], v24, s[4:5]
  global_store_dword v24, v28, s[4:5]
  scratch_load_dword v32, off, off
  s_load_dword s12, s[4:5], 0x0
  s_waitcnt vmcnt(1) lgkmcnt(0)
  s_barrier
  s_setprio 1
  s_nop 3
  s_cbranch_vccz .Lskip
  s_add_u32 s13, s13, 1
.Lskip:
  s_sub_u32 s7, s7, 1
  s_cmp_lg_u32 s7, 0
  s_cbranch_scc1 .Linner
  s_waitcnt vmcnt(0)
  s_sub_u32 s6, s6, 1
  s_cmp_lg_u32 s6, 0
  s_cbranch_scc1 .Louter
.Lplain:
  v_add_u32_e32 v0, 1, v0
  s_cbranch_vccnz .Lplain
  s_endpgm
.Lend:
  .size loops, .Lend-loops

// A loop whose usual way includes a block out of line, and whose detour contains a loop.
  .globl detour
  .protected detour
  .p2align 8
  .type detour,@function
detour:
  s_mov_b32 s6, 3
.Lhead:
  v_mfma_f32_32x32x8_f16 a[0:15], v[4:5], v[6:7], a[0:15]
  s_cbranch_scc1 .Lout_of_line
.Lback:
  v_mul_f32_e32 v10, v11, v12
  s_cbranch_vccnz .Ldetour
  v_mfma_f32_32x32x8_f16 a[0:15], v[4:5], v[6:7], a[0:15]
  v_mfma_f32_32x32x8_f16 a[16:31], v[4:5], v[6:7], a[16:31]
.Ljoin:
  s_sub_u32 s6, s6, 1
  s_cmp_lg_u32 s6, 0
  s_cbranch_scc1 .Lhead
  s_endpgm
.Lout_of_line:
  v_mfma_f32_32x32x8_f16 a[0:15], v[4:5], v[6:7], a[0:15]
  s_branch .Lback
.Ldetour:
  v_mfma_f32_32x32x8_f16 a[0:15], v[4:5], v[6:7], a[0:15]
  v_mfma_f32_32x32x8_f16 a[16:31], v[4:5], v[6:7], a[16:31]
  v_mfma_f32_32x32x8_f16 a[0:15], v[4:5], v[6:7], a[0:15]
  v_mfma_f32_32x32x8_f16 a[16:31], v[4:5], v[6:7], a[16:31]
  s_cbranch_vccnz .Ldetour
  s_branch .Ljoin
.Ldetour_end:
  .size detour, .Ldetour_end-detour

  .rodata
  .p2align 6
  .amdhsa_kernel detour
    .amdhsa_next_free_vgpr 64
    .amdhsa_next_free_sgpr 16
    .amdhsa_accum_offset 32
  .end_amdhsa_kernel
  .p2align 6
  .amdhsa_kernel loops
    .amdhsa_group_segment_fixed_size 20480
    .amdhsa_user_sgpr_kernarg_segment_ptr 1
    .amdhsa_next_free_vgpr 96
    .amdhsa_next_free_sgpr 16
    .amdhsa_accum_offset 64
    .amdhsa_kernarg_size 8
  .end_amdhsa_kernel

  .amdgpu_metadata
---
amdhsa.kernels:
  - .name: detour
    .symbol: detour.kd
    .kernarg_segment_size: 0
    .kernarg_segment_align: 8
    .group_segment_fixed_size: 0
    .private_segment_fixed_size: 0
    .wavefront_size: 64
    .sgpr_count: 16
    .vgpr_count: 64
    .agpr_count: 32
    .sgpr_spill_count: 0
    .vgpr_spill_count: 0
    .max_flat_workgroup_size: 64
    .args: []
  - .name: loops
    .symbol: loops.kd
    .kernarg_segment_size: 8
    .kernarg_segment_align: 8
    .group_segment_fixed_size: 20480
    .private_segment_fixed_size: 16
    .wavefront_size: 64
    .sgpr_count: 22
    .vgpr_count: 96
    .agpr_count: 32
    .sgpr_spill_count: 2
    .vgpr_spill_count: 4
    .max_flat_workgroup_size: 256
    .args:
      - .name: out
        .offset: 0
        .size: 8
        .value_kind: global_buffer
        .address_space: global
amdhsa.target: amdgcn-amd-amdhsa--gfx942
amdhsa.version:
  - 1
  - 2
...
  .end_amdgpu_metadata
