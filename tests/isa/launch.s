// Kernels that store their initial state, and kernels with unusual descriptors.

  .amdgcn_target "amdgcn-amd-amdhsa--gfx942"

// Stores s\first to s\last at s[\to:\to+1]; all lanes store the same. Overwrites v1 and v2.
.macro store_sgprs first, last, to
  v_mov_b32_e32 v1, 0
  .set .Li, \first
  .rept \last - \first + 1
    v_mov_b32_e32 v2, s[.Li]
    global_store_dword v1, v2, s[\to:\to+1] offset:4*(.Li-\first)
    .set .Li, .Li+1
  .endr
.endm

.macro begin name
  .text
  .globl \name
  .protected \name
  .p2align 8
  .type \name,@function
\name:
.endm

.macro end name
.L\name\()_end:
  .size \name, .L\name\()_end-\name
  .rodata
  .p2align 6
.endm

// Every register that a wave can be given. At the wave's 256 bytes of `out` (workgroups of two waves, counted x
// first in a grid of 2 x 2 x 2): s0 to s19, the dispatch packet, the windows' upper halves from the queue.
begin every_register
  s_nop 0
  .fill 63, 4, 0xbf800000 // arguments are preloaded: the machine enters after these 256 bytes
  s_load_dwordx2 s[20:21], s[4:5], 0x0
  s_load_dwordx16 s[24:39], s[0:1], 0x0
  s_load_dwordx2 s[40:41], s[2:3], 0x40
  v_readfirstlane_b32 s22, v0
  s_bfe_u32 s22, s22, 0x40006
  s_lshl_b32 s23, s18, 1
  s_add_u32 s23, s23, s17
  s_lshl_b32 s23, s23, 1
  s_add_u32 s23, s23, s16
  s_lshl_b32 s23, s23, 1
  s_add_u32 s22, s22, s23
  s_lshl_b32 s22, s22, 8
  s_waitcnt lgkmcnt(0)
  s_add_u32 s20, s20, s22
  s_addc_u32 s21, s21, 0
  s_nop 4
  store_sgprs 0, 19, 20
  s_add_u32 s20, s20, 80
  s_addc_u32 s21, s21, 0
  s_nop 4
  store_sgprs 24, 41, 20
  s_endpgm
end every_register
  .amdhsa_kernel every_register
    .amdhsa_kernarg_size 40
    .amdhsa_group_segment_fixed_size 512
    .amdhsa_private_segment_fixed_size 128
    .amdhsa_enable_private_segment 1
    .amdhsa_user_sgpr_dispatch_ptr 1
    .amdhsa_user_sgpr_queue_ptr 1
    .amdhsa_user_sgpr_kernarg_segment_ptr 1
    .amdhsa_user_sgpr_dispatch_id 1
    .amdhsa_user_sgpr_private_segment_size 1
    .amdhsa_user_sgpr_kernarg_preload_length 7
    .amdhsa_user_sgpr_kernarg_preload_offset 3
    .amdhsa_system_sgpr_workgroup_id_x 1
    .amdhsa_system_sgpr_workgroup_id_y 1
    .amdhsa_system_sgpr_workgroup_id_z 1
    .amdhsa_system_sgpr_workgroup_info 1
    .amdhsa_next_free_vgpr 8
    .amdhsa_next_free_sgpr 48
    .amdhsa_accum_offset 8
  .end_amdhsa_kernel

// Disabled registers leave no gap: y and z follow the arguments' address. The workgroup with y = 1 and z = 2 stores
// MODE, and v0 of each x at 64.
.macro mode_kernel name, workitem, round32, round64, denormal32, denormal64, dx10, ieee, ovfl
begin \name
  s_load_dwordx2 s[4:5], s[0:1], 0x0
  s_getreg_b32 s8, hwreg(HW_REG_MODE)
  s_cmp_lg_u32 s2, 1
  s_cbranch_scc1 .L\name\()_out
  s_cmp_lg_u32 s3, 2
  s_cbranch_scc1 .L\name\()_out
  v_lshlrev_b32_e32 v3, 2, v0
  v_and_b32_e32 v3, 0xfff, v3
  s_waitcnt lgkmcnt(0)
  store_sgprs 8, 8, 4
  global_store_dword v3, v0, s[4:5] offset:64
.L\name\()_out:
  s_endpgm
end \name
  .amdhsa_kernel \name
    .amdhsa_kernarg_size 8
    .amdhsa_user_sgpr_kernarg_segment_ptr 1
    .amdhsa_system_sgpr_workgroup_id_x 0
    .amdhsa_system_sgpr_workgroup_id_y 1
    .amdhsa_system_sgpr_workgroup_id_z 1
    .amdhsa_system_vgpr_workitem_id \workitem
    .amdhsa_next_free_vgpr 8
    .amdhsa_next_free_sgpr 16
    .amdhsa_accum_offset 8
    .amdhsa_float_round_mode_32 \round32
    .amdhsa_float_round_mode_16_64 \round64
    .amdhsa_float_denorm_mode_32 \denormal32
    .amdhsa_float_denorm_mode_16_64 \denormal64
    .amdhsa_dx10_clamp \dx10
    .amdhsa_ieee_mode \ieee
    .amdhsa_fp16_overflow \ovfl
  .end_amdhsa_kernel
.endm
mode_kernel mode_defaults, 0, 0, 0, 0, 3, 1, 1, 0
mode_kernel mode_rounding, 1, 1, 2, 3, 3, 0, 1, 0
mode_kernel mode_denormals, 2, 0, 3, 2, 1, 1, 0, 1

// The same code with a descriptor that disables scratch, and one that enables it.
.macro scratch_kernel name, enable
begin \name
  v_mov_b32_e32 v1, 7
  scratch_store_dword off, v1, off offset:60
  s_endpgm
end \name
  .amdhsa_kernel \name
    .amdhsa_private_segment_fixed_size 64
    .amdhsa_enable_private_segment \enable
    .amdhsa_next_free_vgpr 8
    .amdhsa_next_free_sgpr 16
    .amdhsa_accum_offset 8
  .end_amdhsa_kernel
.endm
scratch_kernel scratch_off, 0
scratch_kernel scratch_on, 1

// A descriptor that leaves all sizes to the metadata. Stores uninitialised scratch.
begin sizes
  s_load_dwordx2 s[4:5], s[0:1], 0x0
  v_mov_b32_e32 v0, 0
  scratch_load_dword v1, off, off offset:8
  s_waitcnt vmcnt(0) lgkmcnt(0)
  global_store_dword v0, v1, s[4:5]
  s_endpgm
end sizes
  .amdhsa_kernel sizes
    .amdhsa_kernarg_size 0
    .amdhsa_user_sgpr_kernarg_segment_ptr 1
    .amdhsa_enable_private_segment 1
    .amdhsa_private_segment_fixed_size 0
    .amdhsa_next_free_vgpr 8
    .amdhsa_next_free_sgpr 16
    .amdhsa_accum_offset 8
  .end_amdhsa_kernel

// Stores the arguments that runtimes add: the apertures in the queue, those in the arguments, and the dimensions.
begin hidden
  s_load_dwordx4 s[4:7], s[0:1], 0x0
  s_load_dwordx4 s[8:11], s[0:1], 0x10
  s_waitcnt lgkmcnt(0)
  s_load_dwordx2 s[6:7], s[6:7], 0x40
  s_waitcnt lgkmcnt(0)
  store_sgprs 6, 10, 4
  s_endpgm
end hidden
  .amdhsa_kernel hidden
    .amdhsa_kernarg_size 32
    .amdhsa_user_sgpr_kernarg_segment_ptr 1
    .amdhsa_next_free_vgpr 8
    .amdhsa_next_free_sgpr 16
    .amdhsa_accum_offset 8
  .end_amdhsa_kernel

  .amdgpu_metadata
---
amdhsa.kernels:
  - .name: hidden
    .symbol: hidden.kd
    .kernarg_segment_size: 32
    .kernarg_segment_align: 8
    .group_segment_fixed_size: 0
    .private_segment_fixed_size: 0
    .wavefront_size: 64
    .sgpr_count: 22
    .vgpr_count: 8
    .agpr_count: 0
    .max_flat_workgroup_size: 1024
    .args:
      - {.offset: 0, .size: 8, .value_kind: global_buffer, .address_space: global}
      - {.offset: 8, .size: 8, .value_kind: hidden_queue_ptr}
      - {.offset: 16, .size: 4, .value_kind: hidden_shared_base}
      - {.offset: 20, .size: 4, .value_kind: hidden_private_base}
      - {.offset: 24, .size: 2, .value_kind: hidden_grid_dims}
  - .name: sizes
    .symbol: sizes.kd
    .kernarg_segment_size: 8
    .kernarg_segment_align: 8
    .group_segment_fixed_size: 2048
    .private_segment_fixed_size: 16
    .wavefront_size: 64
    .sgpr_count: 22
    .vgpr_count: 8
    .agpr_count: 0
    .max_flat_workgroup_size: 0
amdhsa.target: amdgcn-amd-amdhsa--gfx942
amdhsa.version:
  - 1
  - 2
...
  .end_amdgpu_metadata
