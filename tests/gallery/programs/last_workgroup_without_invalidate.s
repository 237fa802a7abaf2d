// The last workgroup sums the parts of all, but its own caches may hold older data
// report: stale_cache
// at: global_load_dwordx4
// other: global_store_dword
// launch: groups=4
.include "kernel.inc"

kernel_begin
  arguments
  last_workgroup invalidate=!BUG
kernel_end
