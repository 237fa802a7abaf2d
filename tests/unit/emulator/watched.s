// watched(memory): touches dwords in every possible way, and multiplies matrices. 64 work-items.

  .amdgcn_target "amdgcn-amd-amdhsa--gfx942"
  .text
  .globl watched
  .protected watched
  .p2align 8
  .type watched,@function
watched:
  s_load_dwordx2 s[4:5], s[0:1], 0x0
  v_lshlrev_b32_e32 v0, 2, v0
  v_mov_b32_e32 v2, 0
  v_mov_b32_e32 v3, 0
  s_waitcnt lgkmcnt(0)
  s_load_dwordx2 s[12:13], s[4:5], 0x8              // dwords 2 and 3
  global_load_dword v1, v0, s[4:5] offset:256       // 64 to 127, one a lane
  global_store_byte v0, v2, s[4:5] offset:513       // bytes of 128 to 191
  global_load_dwordx2 v[4:5], v3, s[4:5] offset:1024 // 256 and 257, all lanes
  v_add_u32_e32 v6, 0x800, v0
  global_atomic_add v6, v2, s[4:5]                  // 512 to 575
  s_and_b32 s9, s5, 0xffff
  s_mov_b32 s8, s4
  s_movk_i32 s10, 0x608
  s_mov_b32 s11, 0x20000
  buffer_load_dword v7, v0, s[8:11], 0 offen offset:1536 // 384 and 385; the other lanes are out of range
  s_waitcnt vmcnt(0) lgkmcnt(0)
  v_mfma_f32_16x16x16_f16 v[16:19], v[2:3], v[2:3], 0
  s_nop 15
  s_nop 15
  v_mfma_f32_16x16x16_f16 v[16:19], v[2:3], v[2:3], 0
  s_nop 15
  s_nop 15
  v_mfma_f32_32x32x8_f16 v[16:31], v[2:3], v[2:3], 0
  s_endpgm
.Lend:
  .size watched, .Lend-watched

  .rodata
  .p2align 6
  .amdhsa_kernel watched
    .amdhsa_user_sgpr_kernarg_segment_ptr 1
    .amdhsa_next_free_vgpr 32
    .amdhsa_next_free_sgpr 16
    .amdhsa_accum_offset 32
    .amdhsa_kernarg_size 8
  .end_amdhsa_kernel

  .amdgpu_metadata
---
amdhsa.version: [1, 2]
amdhsa.kernels:
  - .name: watched
    .symbol: watched.kd
    .kernarg_segment_size: 8
    .kernarg_segment_align: 8
    .group_segment_fixed_size: 0
    .private_segment_fixed_size: 0
    .wavefront_size: 64
    .sgpr_count: 16
    .vgpr_count: 32
    .max_flat_workgroup_size: 64
    .args:
      - {.offset: 0, .size: 8, .value_kind: global_buffer, .address_space: global}
...
  .end_amdgpu_metadata
