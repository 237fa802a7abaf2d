// Kernels that test how the emulator's command line handles registers and argument bytes.
//
//   echo(out, ...)   writes the first 128 bytes of its arguments to out; one argument of every size
//   bare(out, ...)   the same, without metadata
//   steps(value)     writes registers of every kind
//   careless(out)    two mistakes: it uses a load without a wait, and LDS that was never written
//   hasty()          a third, on a path that no wave takes: v_readlane_b32 too soon after its lane was written
//   numbers()        the reciprocals of 4 to 67, and a NaN
//   preloaded(value) has its argument in s2 at the start, or loads it

  .amdgcn_target "amdgcn-amd-amdhsa--gfx942"
  .text

.include "emu_kernel.inc"

.macro copy_arguments
  s_load_dwordx2 s[4:5], s[0:1], 0x0
  v_lshlrev_b32_e32 v1, 2, v0
  s_mov_b64 exec, 0xffffffff
  global_load_dword v2, v1, s[0:1]
  s_waitcnt vmcnt(0) lgkmcnt(0)
  global_store_dword v1, v2, s[4:5]
.endm

begin echo
  copy_arguments
end echo, 128

begin bare
  copy_arguments
end bare, 128

begin steps
  s_mov_b32 s4, 7
  v_add_u32_e32 v1, 1, v0
  s_mov_b64 exec, 3
  v_mov_b32_e32 v1, s4
  s_mov_b64 exec, -1
  v_accvgpr_write_b32 a0, v1
  v_cmp_eq_u32_e32 vcc, 7, v1
  s_cmp_eq_u32 s4, 7
  s_mov_b32 m0, 0x40
  v_mad_u64_u32 v[4:5], s[8:9], s4, v0, 0
  s_load_dword s5, s[0:1], 0x0
  s_waitcnt lgkmcnt(0)
  s_cbranch_scc1 .Lskip
  s_trap 1
.Lskip:
  s_mov_b32 s6, s5
end steps, 4

begin careless
  s_load_dwordx2 s[4:5], s[0:1], 0x0
  v_mov_b32_e32 v1, 0
  s_waitcnt lgkmcnt(0)
  global_load_dword v2, v1, s[4:5]
  v_add_u32_e32 v3, 1, v2
  s_waitcnt vmcnt(0)
  ds_read_b32 v4, v1
  s_waitcnt lgkmcnt(0)
  v_cmp_eq_u32_e32 vcc, 0, v4
  s_cbranch_vccz .Lcareful
.Lcareful:
end careless, 8, 64

begin hasty
  s_cmp_eq_u32 s2, s2
  s_cbranch_scc1 .Lnot_taken
  v_readfirstlane_b32 s4, v0
  v_readlane_b32 s5, v0, s4
.Lnot_taken:
end hasty, 0

begin numbers
  v_cvt_f32_u32_e32 v1, v0
  v_add_f32_e32 v1, 4.0, v1
  v_rcp_f32_e32 v2, v1
  v_mov_b32_e32 v3, 0x7f800000
  v_sub_f32_e32 v4, v3, v3
end numbers, 0

  // Its first 256 bytes are for firmware that does not preload.
begin preloaded
  s_load_dword s2, s[0:1], 0x0
  s_waitcnt lgkmcnt(0)
  s_branch .Lpreloaded
  .p2align 8, 0
.Lpreloaded:
  s_mov_b32 s4, s2
end preloaded, 8, 0, 1

  .amdgpu_metadata
---
amdhsa.kernels:
  - .name: echo
    .symbol: echo.kd
    .kernarg_segment_size: 128
    .kernarg_segment_align: 8
    .group_segment_fixed_size: 0
    .private_segment_fixed_size: 0
    .wavefront_size: 64
    .sgpr_count: 22
    .vgpr_count: 12
    .max_flat_workgroup_size: 64
    .args:
      - { .name: out, .offset: 0, .size: 8, .value_kind: global_buffer, .address_space: global }
      - { .name: a, .offset: 8, .size: 1, .value_kind: by_value }
      - { .name: b, .offset: 9, .size: 1, .value_kind: by_value }
      - { .name: c, .offset: 10, .size: 2, .value_kind: by_value }
      - { .name: d, .offset: 12, .size: 2, .value_kind: by_value }
      - { .name: e, .offset: 14, .size: 2, .value_kind: by_value }
      - { .name: f, .offset: 16, .size: 2, .value_kind: by_value }
      - { .name: g, .offset: 20, .size: 4, .value_kind: by_value }
      - { .name: h, .offset: 24, .size: 4, .value_kind: by_value }
      - { .name: i, .offset: 28, .size: 4, .value_kind: by_value }
      - { .name: j, .offset: 32, .size: 8, .value_kind: by_value }
      - { .name: k, .offset: 40, .size: 8, .value_kind: by_value }
      - { .name: l, .offset: 48, .size: 8, .value_kind: by_value }
      - { .name: m, .offset: 56, .size: 6, .value_kind: by_value }
      - { .name: n, .offset: 64, .size: 8, .value_kind: global_buffer, .address_space: global }
      - { .name: o, .offset: 72, .size: 8, .value_kind: global_buffer, .address_space: global }
      - { .offset: 80, .size: 4, .value_kind: hidden_block_count_x }
      - { .offset: 84, .size: 4, .value_kind: hidden_block_count_y }
      - { .offset: 88, .size: 4, .value_kind: hidden_block_count_z }
      - { .offset: 92, .size: 2, .value_kind: hidden_group_size_x }
      - { .offset: 94, .size: 2, .value_kind: hidden_group_size_y }
  - .name: steps
    .symbol: steps.kd
    .kernarg_segment_size: 4
    .kernarg_segment_align: 8
    .group_segment_fixed_size: 0
    .private_segment_fixed_size: 0
    .wavefront_size: 64
    .sgpr_count: 22
    .vgpr_count: 12
    .max_flat_workgroup_size: 1024
    .args:
      - { .name: value, .offset: 0, .size: 4, .value_kind: by_value }
  - .name: careless
    .symbol: careless.kd
    .kernarg_segment_size: 8
    .kernarg_segment_align: 8
    .group_segment_fixed_size: 64
    .private_segment_fixed_size: 0
    .wavefront_size: 64
    .sgpr_count: 22
    .vgpr_count: 12
    .max_flat_workgroup_size: 1024
    .args:
      - { .name: out, .offset: 0, .size: 8, .value_kind: global_buffer, .address_space: global }
amdhsa.target: amdgcn-amd-amdhsa--gfx942
amdhsa.version:
  - 1
  - 2
...
  .end_amdgpu_metadata
