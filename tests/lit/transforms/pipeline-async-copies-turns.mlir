// Tiles that take turns have one slot each: one is copied while the other is read.
// RUN: sluice-opt %s --verify-diagnostics --pass-pipeline='builtin.module(gpu.module(gpu.func(pipeline-async-copies{stages=2})))' | FileCheck %s

!tile = !sluice.lds_tile<32x512xf16>

gpu.module @m {
  // V's copy follows the barrier after which no wave reads the previous V, and K's copy follows the next barrier.
  // Nothing younger is in flight at the wait for either. Before the loop only K is copied.
  // CHECK-LABEL: gpu.func @direct
  // CHECK-COUNT-2: sluice.lds_alloc
  // CHECK-NOT:     sluice.lds_alloc
  // CHECK:         sluice.async_dma %[[K:[a-z0-9]+]][%{{.*}} into %[[KT:.*]] :
  // CHECK-NEXT:    sluice.async_mark
  // CHECK-NEXT:    sluice.wait_marks 0
  // CHECK-NEXT:    sluice.barrier
  // CHECK:         scf.for %[[T:.*]] = {{.*}} step %c1_i32
  // CHECK-NOT:       sluice.barrier
  // CHECK:           sluice.async_dma %[[V:[a-z0-9]+]][%[[T]]] {{.*}} into %[[VT:.*]] :
  // CHECK-NEXT:      sluice.async_mark
  // CHECK-NEXT:      sluice.lds_read %[[KT]]
  // CHECK-NEXT:      sluice.wait_marks 0
  // CHECK-NEXT:      sluice.barrier
  // CHECK:           %[[T1:.*]] = arith.addi %[[T]]
  // CHECK:           sluice.async_dma %[[K]][%[[T1]]] {{.*}} into %[[KT]] :
  // CHECK-NEXT:      sluice.async_mark
  // CHECK-NEXT:      sluice.lds_read %[[VT]]
  // CHECK-NEXT:      sluice.wait_marks 0
  // CHECK-NEXT:      sluice.barrier
  // CHECK-NEXT:    }
  gpu.func @direct(%k: !llvm.ptr<1>, %v: !llvm.ptr<1>, %n: i32, %tiles: i32, %stride: i64) kernel
      attributes {sluice.tiles_take_turns} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %kt = sluice.lds_alloc : !tile
    %vt = sluice.lds_alloc : !tile
    scf.for %t = %c0 to %tiles step %c1 : i32 {
      %kc = sluice.async_dma %k[%t] limit %n stride %stride into %kt : !tile
      %vc = sluice.async_dma %v[%t] limit %n stride %stride into %vt : !tile
      sluice.async_wait %kc
      %a = sluice.lds_read %kt[%c0, %c0] : !tile, vector<4xf16>
      sluice.async_wait %vc
      %b = sluice.lds_read %vt[%c0, %c0] : !tile, vector<4xf16>
      sluice.barrier
    }
    gpu.return
  }

  // Rows in registers last for one turn, and the loop carries none.
  // CHECK-LABEL: gpu.func @through_registers
  // CHECK-SAME:    %[[K:[a-z0-9]+]]: !llvm.ptr<1>, %[[V:[a-z0-9]+]]: !llvm.ptr<1>,
  // CHECK:         %[[K0:.*]] = sluice.fetch_rows %[[K]]
  // CHECK-NOT:     sluice.fetch_rows
  // CHECK:         sluice.land_rows %[[K0]] into %[[KT:.*]] from
  // CHECK-NEXT:    sluice.barrier
  // CHECK:         scf.for %[[T:.*]] = {{.*}} {
  // CHECK-NOT:       sluice.barrier
  // CHECK:           %[[V0:.*]] = sluice.fetch_rows %[[V]][%[[T]]]
  // CHECK-NEXT:      sluice.lds_read %[[KT]]
  // CHECK-NEXT:      sluice.land_rows %[[V0]] into %[[VT:.*]] from
  // CHECK-NEXT:      sluice.barrier
  // CHECK:           %[[K1:.*]] = sluice.fetch_rows %[[K]]
  // CHECK-NEXT:      sluice.lds_read %[[VT]]
  // CHECK-NEXT:      sluice.land_rows %[[K1]] into %[[KT]] from
  // CHECK-NEXT:      sluice.barrier
  // CHECK-NEXT:    }
  gpu.func @through_registers(%k: !llvm.ptr<1>, %v: !llvm.ptr<1>, %n: i32, %tiles: i32, %stride: i64) kernel
      attributes {known_block_size = array<i32: 256, 1, 1>, sluice.tiles_take_turns} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %kt = sluice.lds_alloc : !tile
    %vt = sluice.lds_alloc : !tile
    scf.for %t = %c0 to %tiles step %c1 : i32 {
      %kc = sluice.async_dma %k[%t] limit %n stride %stride into %kt from f16 {close_rows} : !tile
      %vc = sluice.async_dma %v[%t] limit %n stride %stride into %vt from f16 {close_rows} : !tile
      sluice.async_wait %kc
      %a = sluice.lds_read %kt[%c0, %c0] : !tile, vector<4xf16>
      sluice.async_wait %vc
      %b = sluice.lds_read %vt[%c0, %c0] : !tile, vector<4xf16>
      sluice.barrier
    }
    gpu.return
  }

  // A copy would overwrite a tile that is still read.
  gpu.func @read_late(%k: !llvm.ptr<1>, %v: !llvm.ptr<1>, %n: i32, %tiles: i32, %stride: i64) kernel
      attributes {sluice.tiles_take_turns} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %kt = sluice.lds_alloc : !tile
    %vt = sluice.lds_alloc : !tile
    // expected-remark@+1 {{not pipelined: its tiles take turns, but a tile is read in another one's turn}}
    scf.for %t = %c0 to %tiles step %c1 : i32 {
      %kc = sluice.async_dma %k[%t] limit %n stride %stride into %kt : !tile
      %vc = sluice.async_dma %v[%t] limit %n stride %stride into %vt : !tile
      sluice.async_wait %kc
      %a = sluice.lds_read %kt[%c0, %c0] : !tile, vector<4xf16>
      sluice.async_wait %vc
      %b = sluice.lds_read %vt[%c0, %c0] : !tile, vector<4xf16>
      %c = sluice.lds_read %kt[%c0, %c0] : !tile, vector<4xf16>
      sluice.barrier
    }
    gpu.return
  }

  // Entries for V(t) and for K(t + 1) would be needed at the same time.
  gpu.func @shared_lookup(%k: !llvm.ptr<1>, %v: !llvm.ptr<1>, %table: !llvm.ptr<1>, %n: i32, %tiles: i32, %stride: i64,
                          %rows: i32) kernel attributes {sluice.tiles_take_turns} {
    %pages = sluice.pages of %rows
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %kt = sluice.lds_alloc : !tile
    %vt = sluice.lds_alloc : !tile
    // expected-remark@+1 {{not pipelined: its tiles take turns, but their copies share a look-up}}
    scf.for %t = %c0 to %tiles step %c1 : i32 {
      %e = sluice.page_lookup %table[%t] limit %n in %pages
      %kc = sluice.async_dma %k[%t] limit %n stride %stride gather %e in %pages stride %stride into %kt : !tile
      %vc = sluice.async_dma %v[%t] limit %n stride %stride gather %e in %pages stride %stride into %vt : !tile
      sluice.async_wait %kc
      %a = sluice.lds_read %kt[%c0, %c0] : !tile, vector<4xf16>
      sluice.async_wait %vc
      %b = sluice.lds_read %vt[%c0, %c0] : !tile, vector<4xf16>
      sluice.barrier
    }
    gpu.return
  }
}
