// All workgroups write the same dword
// report: global_race
// at: global_store_dword
// other: global_store_dword
// launch: groups=4
.include "kernel.inc"

kernel_begin
  arguments
  v_mov_b32_e32 v3, 0
.if !BUG
  s_lshl_b32 s16, s2, 2
  v_mov_b32_e32 v3, s16
.endif
  v_mov_b32_e32 v4, s2
  s_mov_b64 exec, 1
  global_store_dword v3, v4, s[4:5]
kernel_end
