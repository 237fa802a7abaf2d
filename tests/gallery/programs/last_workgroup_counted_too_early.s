// The last workgroup sums the parts of all, but the others count themselves before their stores are done
// report: global_race
// at: global_load_dwordx4
// other: global_store_dword
// launch: groups=4
.include "kernel.inc"

kernel_begin
  arguments
  last_workgroup wait=!BUG
kernel_end
