// The last workgroup sums what all wrote, but its own caches may hold what was there before
// report: stale_cache
// at: global_load_dwordx4
// other: global_store_dword
// launch: groups=4
.include "kernel.inc"

kernel_begin
  arguments
  last_workgroup invalidate=!BUG
kernel_end
