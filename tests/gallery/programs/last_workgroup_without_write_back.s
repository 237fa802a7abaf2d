// The last workgroup sums what all wrote, but the parts may still be in the caches of the workgroups that wrote them
// report: stale_cache
// at: global_load_dwordx4
// other: global_store_dword
// launch: groups=4
.include "kernel.inc"

kernel_begin
  arguments
  last_workgroup write_back=!BUG
kernel_end
