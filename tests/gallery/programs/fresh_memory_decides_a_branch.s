// A flag is read from memory that was never written, and a branch depends on it
// report: register_uninitialised
// at: s_cbranch_scc1
// other: s_load_dword s16
.include "kernel.inc"

kernel_begin
  arguments
.if BUG
  s_load_dword s16, s[6:7], 0x0
.else
  s_load_dword s16, s[8:9], 0x0
.endif
  s_waitcnt lgkmcnt(0)
  s_cmp_lg_u32 s16, 0
  s_cbranch_scc1 done
done:
kernel_end
