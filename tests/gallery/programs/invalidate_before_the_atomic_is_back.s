// The last workgroup invalidates its caches before the atomic that identifies it as the last has returned
// report: stale_cache
// at: global_load_dwordx4
// other: global_store_dword
// launch: groups=4
.include "kernel.inc"

kernel_begin
  arguments
  last_workgroup invalidate=!BUG, invalidate_early=BUG
kernel_end
