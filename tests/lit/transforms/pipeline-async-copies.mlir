// RUN: sluice-opt %s --allow-unregistered-dialect --pass-pipeline='builtin.module(gpu.module(gpu.func(pipeline-async-copies{stages=2})))' | FileCheck %s --check-prefix=TWO
// RUN: sluice-opt %s --allow-unregistered-dialect --pass-pipeline='builtin.module(gpu.module(gpu.func(pipeline-async-copies{stages=3})))' | FileCheck %s --check-prefix=THREE
// RUN: sluice-opt %s --allow-unregistered-dialect --pass-pipeline='builtin.module(gpu.module(gpu.func(pipeline-async-copies{stages=1})))' | FileCheck %s --check-prefix=ONE

!tile = !sluice.lds_tile<64x128xf16>

// Two tiles, two stages. A barrier follows each wait, and after it comes the copy for the next iteration into the
// other slot. At the wait for a tile, the copy of the other tile is younger and stays in flight: one mark. The first
// wait and barrier of an iteration end the previous iteration; those of the first iteration are before the loop.
// TWO-LABEL: gpu.func @two_tiles
// TWO:         %[[K0:.*]] = sluice.lds_alloc
// TWO-NEXT:    %[[K1:.*]] = sluice.lds_alloc
// TWO-NEXT:    %[[V0:.*]] = sluice.lds_alloc
// TWO-NEXT:    %[[V1:.*]] = sluice.lds_alloc
// TWO:         sluice.async_dma {{.*}} into %[[K0]]
// TWO-NEXT:    sluice.async_mark
// TWO:         sluice.async_dma {{.*}} into %[[V0]]
// TWO-NEXT:    sluice.async_mark
// TWO-NEXT:    sluice.wait_marks 1
// TWO-NEXT:    sluice.barrier
// TWO:         scf.for
// TWO-NOT:       sluice.barrier
// TWO:           sluice.async_dma {{.*}} into %[[K1]]
// TWO-NEXT:      sluice.async_mark
// TWO:           sluice.lds_read %[[K0]]
// TWO:           sluice.wait_marks 1
// TWO-NEXT:      sluice.barrier
// TWO:           sluice.async_dma {{.*}} into %[[V1]]
// TWO-NEXT:      sluice.async_mark
// TWO:           sluice.lds_read %[[V0]]
// The barrier that ended the body is subsumed: only one is left before the second half.
// TWO-NEXT:      "test.use"
// TWO-NEXT:      sluice.wait_marks 1
// TWO-NEXT:      sluice.barrier
// TWO-NOT:       sluice.barrier
// TWO:           scf.if
// TWO-NOT:         sluice.barrier
// TWO:             sluice.async_dma {{.*}} into %[[K0]]
// TWO:             sluice.lds_read %[[K1]]
// TWO:             sluice.wait_marks 1
// TWO-NEXT:        sluice.barrier
// TWO:             sluice.async_dma {{.*}} into %[[V0]]
// TWO:             sluice.lds_read %[[V1]]
// TWO-NEXT:        "test.use"
// TWO-NEXT:        sluice.wait_marks 1
// TWO-NEXT:        sluice.barrier
// TWO-NOT:         sluice.barrier
// Copies issued past the end land before the LDS is released.
// TWO:         sluice.wait_marks 0
// TWO-NEXT:    gpu.return

// Three stages: two whole iterations are ahead, so three younger groups stay in flight.
// THREE-LABEL: gpu.func @two_tiles
// THREE-COUNT-6: sluice.lds_alloc
// THREE-COUNT-4: sluice.async_mark
// THREE:       sluice.wait_marks 3
// THREE-NEXT:  sluice.barrier
// THREE:       scf.for
// THREE-COUNT-2: sluice.wait_marks 3
// THREE:         scf.if
// THREE-COUNT-2:   sluice.wait_marks 3
// THREE:         scf.if
// THREE-COUNT-2:   sluice.wait_marks 3
// THREE:       sluice.wait_marks 0

// With one stage the pass does not change the loop.
// ONE-LABEL:   gpu.func @two_tiles
// ONE-COUNT-2: sluice.lds_alloc
// ONE-NOT:     sluice.async_mark
// ONE:         sluice.async_wait
gpu.module @m {
  gpu.func @two_tiles(%k: !llvm.ptr<1>, %v: !llvm.ptr<1>, %n: i32, %tiles: i32, %stride: i64, %row: i32) kernel {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c64 = arith.constant 64 : i32
    %kt = sluice.lds_alloc : !tile
    %vt = sluice.lds_alloc : !tile
    scf.for %t = %c0 to %tiles step %c1 : i32 {
      %first = arith.muli %t, %c64 : i32
      %kc = sluice.async_dma %k[%first] limit %n stride %stride into %kt : !tile
      %vc = sluice.async_dma %v[%first] limit %n stride %stride into %vt : !tile
      sluice.async_wait %kc
      %a = sluice.lds_read %kt[%row, %c0] : !tile, vector<4xf16>
      sluice.async_wait %vc
      %b = sluice.lds_read %vt[%row, %c0] : !tile, vector<4xf16>
      "test.use"(%a, %b) : (vector<4xf16>, vector<4xf16>) -> ()
      sluice.barrier
    }
    gpu.return
  }

  // Two parts of a row, which are read together: the wait for the second one completes the first as well. Each keeps
  // its barrier, before the copy that overwrites its other slot.
  // TWO-LABEL: gpu.func @read_together
  // TWO-COUNT-2:  sluice.async_mark
  // TWO:          scf.for
  // TWO-NOT:        sluice.wait_marks
  // TWO:            sluice.barrier
  // TWO-NOT:        sluice.wait_marks
  // TWO:            sluice.async_dma
  // TWO-NEXT:       sluice.async_mark
  // TWO:            sluice.wait_marks 1
  // TWO-NEXT:       sluice.barrier
  // TWO:            sluice.async_dma
  // TWO-NOT:        sluice.wait_marks
  // TWO:            scf.if
  // TWO-NOT:          sluice.wait_marks
  // TWO:              sluice.barrier
  // TWO-NOT:          sluice.wait_marks
  // TWO:              sluice.async_dma
  // TWO:              sluice.wait_marks 1
  // TWO-NEXT:         sluice.barrier
  // TWO:          sluice.wait_marks 0
  // THREE-LABEL: gpu.func @read_together
  // THREE:        scf.for
  // THREE-NOT:      sluice.wait_marks
  // THREE:          sluice.barrier
  // THREE:          sluice.wait_marks 3
  // THREE-NEXT:     sluice.barrier
  gpu.func @read_together(%k: !llvm.ptr<1>, %n: i32, %tiles: i32, %stride: i64, %row: i32) kernel {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c64 = arith.constant 64 : i32
    %front = sluice.lds_alloc : !tile
    %back = sluice.lds_alloc : !tile
    scf.for %t = %c0 to %tiles step %c1 : i32 {
      %first = arith.muli %t, %c64 : i32
      %fc = sluice.async_dma %k[%first] limit %n stride %stride into %front : !tile
      %bc = sluice.async_dma %k[%first] limit %n stride %stride into %back : !tile
      sluice.async_wait %fc
      sluice.async_wait %bc
      %a = sluice.lds_read %front[%row, %c0] : !tile, vector<4xf16>
      %b = sluice.lds_read %back[%row, %c0] : !tile, vector<4xf16>
      "test.use"(%a, %b) : (vector<4xf16>, vector<4xf16>) -> ()
      sluice.barrier
    }
    gpu.return
  }

  // Two pairs, as with parts of the rows of K and of V: each pair's last barrier has ended all reads of the other
  // pair, so that the first tiles need no barrier of their own.
  // TWO-LABEL: gpu.func @pairs_read_together
  // TWO:          scf.for
  // TWO-NOT:        sluice.barrier
  // TWO:            sluice.async_dma
  // TWO-NOT:        sluice.barrier
  // TWO:            sluice.wait_marks 3
  // TWO-NEXT:       sluice.barrier
  // TWO-NOT:        sluice.barrier
  // TWO:            sluice.async_dma
  // TWO:            sluice.async_dma
  // TWO-NOT:        sluice.barrier
  // TWO:            sluice.wait_marks 3
  // TWO-NEXT:       sluice.barrier
  // TWO:            sluice.async_dma
  // TWO-NOT:        sluice.barrier
  // TWO:            scf.if
  gpu.func @pairs_read_together(%k: !llvm.ptr<1>, %v: !llvm.ptr<1>, %n: i32, %tiles: i32, %stride: i64,
                                %row: i32) kernel {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c64 = arith.constant 64 : i32
    %kt = sluice.lds_alloc : !tile
    %kt2 = sluice.lds_alloc : !tile
    %vt = sluice.lds_alloc : !tile
    %vt2 = sluice.lds_alloc : !tile
    scf.for %t = %c0 to %tiles step %c1 : i32 {
      %first = arith.muli %t, %c64 : i32
      %kc = sluice.async_dma %k[%first] limit %n stride %stride into %kt : !tile
      %kc2 = sluice.async_dma %k[%first] limit %n stride %stride into %kt2 : !tile
      %vc = sluice.async_dma %v[%first] limit %n stride %stride into %vt : !tile
      %vc2 = sluice.async_dma %v[%first] limit %n stride %stride into %vt2 : !tile
      sluice.async_wait %kc
      sluice.async_wait %kc2
      %a = sluice.lds_read %kt[%row, %c0] : !tile, vector<4xf16>
      %a2 = sluice.lds_read %kt2[%row, %c0] : !tile, vector<4xf16>
      "test.use"(%a, %a2) : (vector<4xf16>, vector<4xf16>) -> ()
      sluice.async_wait %vc
      sluice.async_wait %vc2
      %b = sluice.lds_read %vt[%row, %c0] : !tile, vector<4xf16>
      %b2 = sluice.lds_read %vt2[%row, %c0] : !tile, vector<4xf16>
      "test.use"(%b, %b2) : (vector<4xf16>, vector<4xf16>) -> ()
      sluice.barrier
    }
    gpu.return
  }
}
