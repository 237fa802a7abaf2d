// A workgroup reads what the next one writes, in the same dispatch
// report: global_race
// at: global_
// other: global_
// launch: groups=4
.include "kernel.inc"

kernel_begin
  arguments
  v_mov_b32_e32 v4, s2
  s_lshl_b32 s16, s2, 2
  v_mov_b32_e32 v3, s16
  s_mov_b64 exec, 1
  global_store_dword v3, v4, s[4:5]
.if BUG
  global_load_dword v5, v3, s[4:5] offset:4
.else
  global_load_dword v5, v3, s[4:5] offset:64
.endif
  s_waitcnt vmcnt(0)
kernel_end
