// Loops that the pipeline does not change. Each keeps its copies and waits, and a remark gives the reason.
// RUN: sluice-opt %s --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(gpu.module(gpu.func(pipeline-async-copies)))' | FileCheck %s

!tile = !sluice.lds_tile<64x128xf16>
// CHECK-LABEL: gpu.func @step_of_two
// CHECK-NOT:   async_mark
// CHECK:       sluice.async_wait
gpu.module @m {
  gpu.func @step_of_two(%k: !llvm.ptr<1>, %n: i32, %stride: i64) kernel {
    %c0 = arith.constant 0 : i32
    %c2 = arith.constant 2 : i32
    %kt = sluice.lds_alloc : !tile
    // expected-remark@+1 {{not pipelined: its step is not 1}}
    scf.for %t = %c0 to %n step %c2 : i32 {
      %kc = sluice.async_dma %k[%t] limit %n stride %stride into %kt : !tile
      sluice.async_wait %kc
    }
    gpu.return
  }
}

// -----

!tile = !sluice.lds_tile<64x128xf16>
// The source of the copy is only known after the previous iteration.
// CHECK-LABEL: gpu.func @carried_source
// CHECK-NOT:   async_mark
// CHECK:       gpu.return
gpu.module @m {
  gpu.func @carried_source(%k: !llvm.ptr<1>, %n: i32, %stride: i64) kernel {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %kt = sluice.lds_alloc : !tile
    // expected-remark@+1 {{not pipelined: the source of a copy depends on a value carried by the loop}}
    %last = scf.for %t = %c0 to %n step %c1 iter_args(%row = %c0) -> i32 : i32 {
      %kc = sluice.async_dma %k[%row] limit %n stride %stride into %kt : !tile
      sluice.async_wait %kc
      %next = arith.addi %row, %t : i32
      scf.yield %next : i32
    }
    gpu.return
  }
}

// -----

!tile = !sluice.lds_tile<64x128xf16>
// CHECK-LABEL: gpu.func @read_before_wait
// CHECK-NOT:   async_mark
// CHECK:       gpu.return
gpu.module @m {
  gpu.func @read_before_wait(%k: !llvm.ptr<1>, %n: i32, %stride: i64) kernel {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %kt = sluice.lds_alloc : !tile
    // expected-remark@+1 {{not pipelined: a copied tile is read before the wait for its copy}}
    scf.for %t = %c0 to %n step %c1 : i32 {
      %kc = sluice.async_dma %k[%t] limit %n stride %stride into %kt : !tile
      %a = sluice.lds_read %kt[%c0, %c0] : !tile, vector<4xf16>
      sluice.async_wait %kc
    }
    gpu.return
  }
}

// -----

!tile = !sluice.lds_tile<64x128xf16>
// The tile is read after the loop: its last slot would not be the one that is read.
// CHECK-LABEL: gpu.func @used_after
// CHECK-NOT:   async_mark
// CHECK:       gpu.return
gpu.module @m {
  gpu.func @used_after(%k: !llvm.ptr<1>, %n: i32, %stride: i64) kernel {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %kt = sluice.lds_alloc : !tile
    // expected-remark@+1 {{not pipelined: a copied tile is used outside the loop}}
    scf.for %t = %c0 to %n step %c1 : i32 {
      %kc = sluice.async_dma %k[%t] limit %n stride %stride into %kt : !tile
      sluice.async_wait %kc
    }
    %a = sluice.lds_read %kt[%c0, %c0] : !tile, vector<4xf16>
    gpu.return
  }
}

// -----

!tile = !sluice.lds_tile<64x128xf16>
// CHECK-LABEL: gpu.func @waits_out_of_order
// CHECK-NOT:   async_mark
// CHECK:       gpu.return
gpu.module @m {
  gpu.func @waits_out_of_order(%k: !llvm.ptr<1>, %n: i32, %stride: i64) kernel {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %kt = sluice.lds_alloc : !tile
    %vt = sluice.lds_alloc : !tile
    // expected-remark@+1 {{not pipelined: the waits are not in the order of the copies}}
    scf.for %t = %c0 to %n step %c1 : i32 {
      %kc = sluice.async_dma %k[%t] limit %n stride %stride into %kt : !tile
      %vc = sluice.async_dma %k[%t] limit %n stride %stride into %vt : !tile
      sluice.async_wait %vc
      sluice.async_wait %kc
    }
    gpu.return
  }
}

// -----

!tile = !sluice.lds_tile<64x128xf16>
// Other users of the entries would get those of another iteration.
// CHECK-LABEL: gpu.func @entries_for_more
// CHECK-NOT:   async_mark
// CHECK:       gpu.return
gpu.module @m {
  gpu.func @entries_for_more(%k: !llvm.ptr<1>, %n: i32, %stride: i64) kernel {
    %pages = sluice.pages of %n
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %kt = sluice.lds_alloc : !tile
    // expected-remark@+1 {{not pipelined: entries of a page table serve more than its copies}}
    scf.for %t = %c0 to %n step %c1 : i32 {
      %e = sluice.page_lookup %k[%t] limit %n in %pages
      %kc = sluice.async_dma %k[%t] limit %n stride %stride gather %e in %pages stride %stride into %kt : !tile
      sluice.async_wait %kc
      %a = sluice.row_addresses %k[%t] limit %n stride %stride gather %e in %pages stride %stride {element_bytes = 2 : i32, row_bytes = 256 : i32}
      llvm.store %t, %a : i32, !llvm.ptr<1>
    }
    gpu.return
  }
}

// -----

!tile = !sluice.lds_tile<64x128xf16>
// The pages to look up are only known after the previous iteration.
// CHECK-LABEL: gpu.func @carried_pages
// CHECK-NOT:   async_mark
// CHECK:       gpu.return
gpu.module @m {
  gpu.func @carried_pages(%k: !llvm.ptr<1>, %n: i32, %stride: i64) kernel {
    %pages = sluice.pages of %n
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %kt = sluice.lds_alloc : !tile
    // expected-remark@+1 {{not pipelined: the source of a copy depends on a value carried by the loop}}
    %last = scf.for %t = %c0 to %n step %c1 iter_args(%row = %c0) -> i32 : i32 {
      %e = sluice.page_lookup %k[%row] limit %n in %pages
      %kc = sluice.async_dma %k[%t] limit %n stride %stride gather %e in %pages stride %stride into %kt : !tile
      sluice.async_wait %kc
      %next = arith.addi %row, %t : i32
      scf.yield %next : i32
    }
    gpu.return
  }
}

// -----

!tile = !sluice.lds_tile<64x128xf16>
// CHECK-LABEL: gpu.func @pages_from_memory
// CHECK-NOT:   async_mark
// CHECK:       gpu.return
gpu.module @m {
  gpu.func @pages_from_memory(%k: !llvm.ptr<1>, %n: i32, %stride: i64) kernel {
    %pages = sluice.pages of %n
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %kt = sluice.lds_alloc : !tile
    // expected-remark@+1 {{not pipelined: the source of a copy is computed by 'llvm.load', which cannot be repeated ahead of time}}
    scf.for %t = %c0 to %n step %c1 : i32 {
      %row = llvm.load %k : !llvm.ptr<1> -> i32
      %e = sluice.page_lookup %k[%row] limit %n in %pages
      %kc = sluice.async_dma %k[%t] limit %n stride %stride gather %e in %pages stride %stride into %kt : !tile
      sluice.async_wait %kc
    }
    gpu.return
  }
}
