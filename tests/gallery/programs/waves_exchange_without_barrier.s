// Each wave reads from memory what the other wave of its workgroup has stored, without a barrier
// report: global_race
// at: global_load_dword
// other: global_store_dword
// message: of this workgroup
// launch: waves=2
.include "kernel.inc"

kernel_begin
  arguments
  global_store_dword v1, v0, s[4:5]
.if BUG
  // A wait is not enough,
  s_waitcnt vmcnt(0)
.else
  // and a barrier is: the compute unit keeps the order of issue.
  s_barrier
.endif
  v_xor_b32_e32 v2, 0x100, v1
  global_load_dword v3, v2, s[4:5]
  s_waitcnt vmcnt(0)
kernel_end
