// Copies before the loop: each group of them gets one mark and one wait, before its first user.
// RUN: sluice-opt %s --allow-unregistered-dialect --pass-pipeline='builtin.module(gpu.module(gpu.func(pipeline-async-copies{stages=1})))' | FileCheck %s --check-prefix=ONE
// RUN: sluice-opt %s --allow-unregistered-dialect --pass-pipeline='builtin.module(gpu.module(gpu.func(pipeline-async-copies{stages=2})))' | FileCheck %s --check-prefixes=CHECK,TWO
// RUN: sluice-opt %s --allow-unregistered-dialect --pass-pipeline='builtin.module(gpu.module(gpu.func(pipeline-async-copies{stages=3})))' | FileCheck %s --check-prefixes=CHECK,THREE
// RUN: sluice-opt %s --allow-unregistered-dialect --pass-pipeline='builtin.module(gpu.module(gpu.func(pipeline-async-copies{stages=4})))' | FileCheck %s --check-prefixes=CHECK,FOUR

!tile = !sluice.lds_tile<64x128xf16>

gpu.module @m {
  // The wait for the copy is before the read of its tile. One, two or three copies of the pipeline are in flight at
  // the same time, and the wait leaves exactly those in flight. The copy's own wait is removed.
  // CHECK-LABEL: gpu.func @read
  // CHECK-SAME:    sluice.pipeline = [{drains = 1 : i32, earlier_copies = 1 : i32, groups = ["K"],
  // TWO-SAME:      stages = 2 : i32}]
  // THREE-SAME:    stages = 3 : i32}]
  // FOUR-SAME:     stages = 4 : i32}]
  // CHECK:         %[[Q:.*]] = sluice.lds_alloc {label = "Q"}
  // CHECK-NEXT:    %[[K0:.*]] = sluice.lds_alloc {label = "K.0"}
  // CHECK-NEXT:    %[[K1:.*]] = sluice.lds_alloc {label = "K.1"}
  // THREE-NEXT:    sluice.lds_alloc {label = "K.2"}
  // FOUR-NEXT:     %[[K2:.*]] = sluice.lds_alloc {label = "K.2"}
  // FOUR-NEXT:     sluice.lds_alloc {label = "K.3"}
  // CHECK-NOT:     sluice.
  // CHECK:         sluice.async_dma {{.*}} into %[[Q]]
  // CHECK-NEXT:    sluice.async_mark
  // CHECK-NOT:     sluice.
  // CHECK:         sluice.async_dma {{.*}} into %[[K0]]
  // CHECK-NEXT:    sluice.async_mark
  // THREE:         sluice.async_dma {{.*}} into %[[K1]]
  // THREE-NEXT:    sluice.async_mark
  // FOUR:          sluice.async_dma {{.*}} into %[[K1]]
  // FOUR-NEXT:     sluice.async_mark
  // FOUR:          sluice.async_dma {{.*}} into %[[K2]]
  // FOUR-NEXT:     sluice.async_mark
  // CHECK-NOT:     sluice.
  // CHECK:         "test.other"
  // TWO-NEXT:      sluice.wait_marks 1
  // THREE-NEXT:    sluice.wait_marks 2
  // FOUR-NEXT:     sluice.wait_marks 3
  // CHECK-NEXT:    sluice.barrier
  // CHECK-NEXT:    sluice.lds_read %[[Q]]
  // TWO:           sluice.wait_marks 0
  // THREE:         sluice.wait_marks 1
  // FOUR:          sluice.wait_marks 2
  // CHECK-NEXT:    sluice.barrier
  // CHECK-NOT:     sluice.
  // CHECK:         scf.for

  // With one stage the pass does not change it, and reports nothing about pipelines.
  // ONE-NOT:     sluice.pipeline
  // ONE-LABEL:   gpu.func @read
  // ONE:           sluice.async_dma
  // ONE-NEXT:      sluice.async_wait
  // ONE-NEXT:      "test.other"
  // ONE:           sluice.async_dma
  // ONE-NEXT:      sluice.async_wait
  // ONE-NOT:       sluice.pipeline
  gpu.func @read(%q: !llvm.ptr<1>, %k: !llvm.ptr<1>, %n: i32, %tiles: i32, %stride: i64) kernel {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %qt = sluice.lds_alloc {label = "Q"} : !tile
    %kt = sluice.lds_alloc {label = "K"} : !tile
    %qc = sluice.async_dma %q[%c0] limit %n stride %stride into %qt : !tile
    sluice.async_wait %qc
    "test.other"() : () -> ()
    %a = sluice.lds_read %qt[%c0, %c0] : !tile, vector<4xf16>
    scf.for %t = %c0 to %tiles step %c1 : i32 {
      %kc = sluice.async_dma %k[%t] limit %n stride %stride into %kt : !tile
      sluice.async_wait %kc
      %b = sluice.lds_read %kt[%c0, %c0] : !tile, vector<4xf16>
      "test.use"(%a, %b) : (vector<4xf16>, vector<4xf16>) -> ()
      sluice.barrier
    }
    gpu.return
  }

  // An existing barrier already shows the copy to all waves: the wait goes before it, and the read needs no other
  // barrier.
  // CHECK-LABEL: gpu.func @barrier
  // CHECK:         sluice.async_dma
  // CHECK-NEXT:    sluice.async_mark
  // TWO-COUNT-1:   sluice.async_mark
  // THREE-COUNT-2: sluice.async_mark
  // FOUR-COUNT-3:  sluice.async_mark
  // TWO-NEXT:      sluice.wait_marks 1
  // THREE-NEXT:    sluice.wait_marks 2
  // FOUR-NEXT:     sluice.wait_marks 3
  // CHECK-NEXT:    sluice.barrier
  // CHECK-NEXT:    "test.other"
  // CHECK-NEXT:    "test.another"
  // CHECK-NEXT:    sluice.lds_read
  // TWO:           sluice.wait_marks 0
  // THREE:         sluice.wait_marks 1
  // FOUR:          sluice.wait_marks 2
  // CHECK-NEXT:    sluice.barrier
  // CHECK-NOT:     sluice.
  // CHECK:         scf.for
  gpu.func @barrier(%q: !llvm.ptr<1>, %k: !llvm.ptr<1>, %n: i32, %tiles: i32, %stride: i64) kernel {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %qt = sluice.lds_alloc : !tile
    %kt = sluice.lds_alloc : !tile
    %qc = sluice.async_dma %q[%c0] limit %n stride %stride into %qt : !tile
    sluice.async_wait %qc
    sluice.barrier
    "test.other"() : () -> ()
    "test.another"() : () -> ()
    %a = sluice.lds_read %qt[%c0, %c0] : !tile, vector<4xf16>
    scf.for %t = %c0 to %tiles step %c1 : i32 {
      %kc = sluice.async_dma %k[%t] limit %n stride %stride into %kt : !tile
      sluice.async_wait %kc
      %b = sluice.lds_read %kt[%c0, %c0] : !tile, vector<4xf16>
      "test.use"(%a, %b) : (vector<4xf16>, vector<4xf16>) -> ()
    }
    gpu.return
  }

  // A read inside a condition counts, and the wait is outside of it: all waves have to meet at its barrier.
  // CHECK-LABEL: gpu.func @nested_read
  // CHECK:         scf.if
  // CHECK-NEXT:      "test.other"
  // CHECK-NEXT:    }
  // TWO-NEXT:      sluice.wait_marks 1
  // THREE-NEXT:    sluice.wait_marks 2
  // FOUR-NEXT:     sluice.wait_marks 3
  // CHECK-NEXT:    sluice.barrier
  // CHECK-NEXT:    scf.if
  // CHECK-NEXT:      sluice.lds_read
  gpu.func @nested_read(%q: !llvm.ptr<1>, %k: !llvm.ptr<1>, %n: i32, %tiles: i32, %stride: i64, %p: i1) kernel {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %qt = sluice.lds_alloc : !tile
    %kt = sluice.lds_alloc : !tile
    %qc = sluice.async_dma %q[%c0] limit %n stride %stride into %qt : !tile
    sluice.async_wait %qc
    scf.if %p {
      "test.other"() : () -> ()
    }
    scf.if %p {
      %a = sluice.lds_read %qt[%c0, %c0] : !tile, vector<4xf16>
      "test.use"(%a) : (vector<4xf16>) -> ()
    }
    scf.for %t = %c0 to %tiles step %c1 : i32 {
      %kc = sluice.async_dma %k[%t] limit %n stride %stride into %kt : !tile
      sluice.async_wait %kc
      %b = sluice.lds_read %kt[%c0, %c0] : !tile, vector<4xf16>
      "test.use"(%b) : (vector<4xf16>) -> ()
    }
    gpu.return
  }

  // Two copies without anything between them share a mark, a wait and a barrier.
  // CHECK-LABEL: gpu.func @shared
  // CHECK-SAME:    drains = 1 : i32, earlier_copies = 2 : i32
  // CHECK:         sluice.async_dma
  // CHECK-NEXT:    sluice.async_dma
  // CHECK-NEXT:    sluice.async_mark
  // TWO-COUNT-1:   sluice.async_mark
  // THREE-COUNT-2: sluice.async_mark
  // FOUR-COUNT-3:  sluice.async_mark
  // TWO-NEXT:      sluice.wait_marks 1
  // THREE-NEXT:    sluice.wait_marks 2
  // FOUR-NEXT:     sluice.wait_marks 3
  // CHECK-NEXT:    sluice.barrier
  // CHECK-NEXT:    sluice.lds_read
  // TWO:           sluice.wait_marks 0
  // THREE:         sluice.wait_marks 1
  // FOUR:          sluice.wait_marks 2
  // CHECK-NEXT:    sluice.barrier
  // CHECK-NOT:     sluice.
  // CHECK:         scf.for
  gpu.func @shared(%q: !llvm.ptr<1>, %k: !llvm.ptr<1>, %n: i32, %tiles: i32, %stride: i64) kernel {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %qt = sluice.lds_alloc : !tile
    %rt = sluice.lds_alloc : !tile
    %kt = sluice.lds_alloc : !tile
    %qc = sluice.async_dma %q[%c0] limit %n stride %stride into %qt : !tile
    sluice.async_wait %qc
    %rc = sluice.async_dma %q[%c1] limit %n stride %stride into %rt : !tile
    sluice.async_wait %rc
    %a = sluice.lds_read %qt[%c0, %c0] : !tile, vector<4xf16>
    scf.for %t = %c0 to %tiles step %c1 : i32 {
      %kc = sluice.async_dma %k[%t] limit %n stride %stride into %kt : !tile
      sluice.async_wait %kc
      %b = sluice.lds_read %kt[%c0, %c0] : !tile, vector<4xf16>
      "test.use"(%a, %b) : (vector<4xf16>, vector<4xf16>) -> ()
    }
    gpu.return
  }

  // A barrier between them separates them: the first is waited for before the pipeline's own copies are issued.
  // CHECK-LABEL: gpu.func @two_drains
  // CHECK-SAME:    drains = 2 : i32, earlier_copies = 2 : i32
  // CHECK:         sluice.async_dma
  // CHECK-NEXT:    sluice.async_mark
  // CHECK-NEXT:    sluice.wait_marks 0
  // CHECK-NEXT:    sluice.barrier
  // CHECK-NEXT:    sluice.async_dma
  // CHECK-NEXT:    sluice.async_mark
  // TWO-COUNT-1:   sluice.async_mark
  // THREE-COUNT-2: sluice.async_mark
  // FOUR-COUNT-3:  sluice.async_mark
  // TWO-NEXT:      sluice.wait_marks 1
  // THREE-NEXT:    sluice.wait_marks 2
  // FOUR-NEXT:     sluice.wait_marks 3
  // CHECK-NEXT:    sluice.barrier
  // CHECK-NEXT:    sluice.lds_read
  gpu.func @two_drains(%q: !llvm.ptr<1>, %k: !llvm.ptr<1>, %n: i32, %tiles: i32, %stride: i64) kernel {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %qt = sluice.lds_alloc : !tile
    %rt = sluice.lds_alloc : !tile
    %kt = sluice.lds_alloc : !tile
    %qc = sluice.async_dma %q[%c0] limit %n stride %stride into %qt : !tile
    sluice.async_wait %qc
    sluice.barrier
    %rc = sluice.async_dma %q[%c1] limit %n stride %stride into %rt : !tile
    sluice.async_wait %rc
    %a = sluice.lds_read %qt[%c0, %c0] : !tile, vector<4xf16>
    scf.for %t = %c0 to %tiles step %c1 : i32 {
      %kc = sluice.async_dma %k[%t] limit %n stride %stride into %kt : !tile
      sluice.async_wait %kc
      %b = sluice.lds_read %kt[%c0, %c0] : !tile, vector<4xf16>
      "test.use"(%a, %b) : (vector<4xf16>, vector<4xf16>) -> ()
    }
    gpu.return
  }

  // The copy has no user before the loop: the wait for it is right before the loop.
  // CHECK-LABEL: gpu.func @loop_needs_it
  // CHECK:         "test.other"
  // TWO-NEXT:      sluice.wait_marks 1
  // THREE-NEXT:    sluice.wait_marks 2
  // FOUR-NEXT:     sluice.wait_marks 3
  // CHECK-NEXT:    sluice.barrier
  // TWO:           sluice.wait_marks 0
  // THREE:         sluice.wait_marks 1
  // FOUR:          sluice.wait_marks 2
  // CHECK-NEXT:    sluice.barrier
  // CHECK-NOT:     sluice.
  // CHECK:         scf.for
  gpu.func @loop_needs_it(%q: !llvm.ptr<1>, %k: !llvm.ptr<1>, %n: i32, %tiles: i32, %stride: i64) kernel {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %qt = sluice.lds_alloc : !tile
    %kt = sluice.lds_alloc : !tile
    %qc = sluice.async_dma %q[%c0] limit %n stride %stride into %qt : !tile
    sluice.async_wait %qc
    "test.other"() : () -> ()
    scf.for %t = %c0 to %tiles step %c1 : i32 {
      %kc = sluice.async_dma %k[%t] limit %n stride %stride into %kt : !tile
      sluice.async_wait %kc
      %a = sluice.lds_read %qt[%c0, %c0] : !tile, vector<4xf16>
      %b = sluice.lds_read %kt[%c0, %c0] : !tile, vector<4xf16>
      "test.use"(%a, %b) : (vector<4xf16>, vector<4xf16>) -> ()
    }
    gpu.return
  }
}

gpu.module @order {
  // Two copied tiles: twice as many groups are in flight. Inside the loop each has its own wait, with one group less.
  // Constants after the copy are repeated before the pipeline's copies; one tile has no label.
  // CHECK-LABEL: gpu.func @two_groups
  // CHECK-SAME:    groups = ["0", "V"]
  // CHECK:         %[[Q:.*]] = sluice.lds_alloc :
  // CHECK-NEXT:    %[[K0:.*]] = sluice.lds_alloc :
  // CHECK:         %[[V0:.*]] = sluice.lds_alloc {label = "V.0"}
  // CHECK:         sluice.async_dma {{.*}} into %[[Q]]
  // CHECK-NEXT:    sluice.async_mark
  // CHECK-DAG:     %[[FIRST:.*]] = arith.constant 1 : i32
  // CHECK-DAG:     %[[KEYS:.*]] = arith.constant 64 : i32
  // CHECK:         %[[K_ROW:.*]] = arith.muli %[[FIRST]], %[[KEYS]]
  // CHECK-NEXT:    sluice.async_dma %{{.*}}[%[[K_ROW]]] {{.*}} into %[[K0]]
  // CHECK-NEXT:    sluice.async_mark
  // CHECK:         %[[V_ROW:.*]] = arith.muli %{{.*}}, %[[KEYS]]
  // CHECK-NEXT:    sluice.async_dma %{{.*}}[%[[V_ROW]]] {{.*}} into %[[V0]]
  // CHECK-NEXT:    sluice.async_mark
  // THREE-COUNT-2: sluice.async_mark
  // FOUR-COUNT-4:  sluice.async_mark
  // TWO-NEXT:      sluice.wait_marks 2
  // THREE-NEXT:    sluice.wait_marks 4
  // FOUR-NEXT:     sluice.wait_marks 6
  // CHECK-NEXT:    sluice.barrier
  // CHECK-NEXT:    sluice.lds_read %[[Q]]
  // TWO:           sluice.wait_marks 1
  // THREE:         sluice.wait_marks 3
  // FOUR:          sluice.wait_marks 5
  // CHECK-NEXT:    sluice.barrier
  // CHECK-NOT:     sluice.
  // CHECK:         scf.for
  // CHECK:           sluice.lds_read %[[K0]]
  // TWO-NEXT:        sluice.wait_marks 1
  // THREE-NEXT:      sluice.wait_marks 3
  // FOUR-NEXT:       sluice.wait_marks 5
  // CHECK-NEXT:      sluice.barrier
  // CHECK:           sluice.lds_read %[[V0]]
  gpu.func @two_groups(%q: !llvm.ptr<1>, %k: !llvm.ptr<1>, %v: !llvm.ptr<1>, %n: i32, %tiles: i32, %stride: i64) kernel {
    %c0 = arith.constant 0 : i32
    %c5 = arith.constant 5 : i32
    %qt = sluice.lds_alloc : !tile
    %kt = sluice.lds_alloc : !tile
    %vt = sluice.lds_alloc {label = "V"} : !tile
    %qc = sluice.async_dma %q[%c0] limit %n stride %stride into %qt : !tile
    sluice.async_wait %qc
    %a = sluice.lds_read %qt[%c0, %c0] : !tile, vector<4xf16>
    %c1 = arith.constant 1 : i32
    %c64 = arith.constant 64 : i32
    scf.for %t = %c1 to %tiles step %c1 : i32 {
      %first = arith.muli %t, %c64 : i32
      %kc = sluice.async_dma %k[%first] limit %n stride %stride into %kt : !tile
      %vc = sluice.async_dma %v[%first] limit %n stride %stride into %vt : !tile
      sluice.async_wait %kc
      %b = sluice.lds_read %kt[%c0, %c0] : !tile, vector<4xf16>
      sluice.async_wait %vc
      %c = sluice.lds_read %vt[%c0, %c0] : !tile, vector<4xf16>
      "test.use"(%a, %b, %c) : (vector<4xf16>, vector<4xf16>, vector<4xf16>) -> ()
    }
    gpu.return
  }

  // The pipeline's first row is known too late: its copies are issued right before the loop, after a wait for
  // everything.
  // CHECK-LABEL: gpu.func @not_available
  // CHECK:         %[[Q:.*]] = sluice.lds_alloc
  // CHECK:         sluice.async_dma {{.*}} into %[[Q]]
  // CHECK-NEXT:    sluice.async_mark
  // CHECK-NEXT:    sluice.wait_marks 0
  // CHECK-NEXT:    sluice.barrier
  // CHECK-NEXT:    sluice.lds_read %[[Q]]
  // CHECK-NEXT:    %[[LATE:.*]] = "test.row"
  // CHECK:         %[[ROW:.*]] = arith.addi %{{.*}}, %[[LATE]]
  // CHECK-NEXT:    sluice.async_dma %{{.*}}[%[[ROW]]]
  // CHECK-NEXT:    sluice.async_mark
  // TWO:           sluice.wait_marks 0
  // THREE:         sluice.wait_marks 1
  // FOUR:          sluice.wait_marks 2
  // CHECK-NEXT:    sluice.barrier
  // CHECK-NOT:     sluice.wait_marks
  // CHECK-NOT:     sluice.barrier
  // CHECK:         scf.for
  gpu.func @not_available(%q: !llvm.ptr<1>, %k: !llvm.ptr<1>, %n: i32, %tiles: i32, %stride: i64) kernel {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %qt = sluice.lds_alloc : !tile
    %kt = sluice.lds_alloc : !tile
    %qc = sluice.async_dma %q[%c0] limit %n stride %stride into %qt : !tile
    sluice.async_wait %qc
    %a = sluice.lds_read %qt[%c0, %c0] : !tile, vector<4xf16>
    %late = "test.row"() : () -> i32
    scf.for %t = %c0 to %tiles step %c1 : i32 {
      %first = arith.addi %t, %late : i32
      %kc = sluice.async_dma %k[%first] limit %n stride %stride into %kt : !tile
      sluice.async_wait %kc
      %b = sluice.lds_read %kt[%c0, %c0] : !tile, vector<4xf16>
      "test.use"(%a, %b) : (vector<4xf16>, vector<4xf16>) -> ()
    }
    gpu.return
  }

  // The copies of the first loop's pipeline, and those it waited for, do not concern the second loop.
  // CHECK-LABEL: gpu.func @two_loops
  // CHECK-SAME:    [{drains = 1 : i32, earlier_copies = 1 : i32, groups = ["K"], {{[^}]*}}}, {drains = 0 : i32, earlier_copies = 0 : i32, groups = ["V"],
  // CHECK:         %[[K0:.*]] = sluice.lds_alloc {label = "K.0"}
  // CHECK:         %[[V0:.*]] = sluice.lds_alloc {label = "V.0"}
  // CHECK:         sluice.async_dma
  // CHECK-NEXT:    sluice.async_mark
  // CHECK-NOT:     sluice.
  // CHECK:         sluice.async_dma {{.*}} into %[[K0]]
  // CHECK-NEXT:    sluice.async_mark
  // THREE-COUNT-1: sluice.async_mark
  // FOUR-COUNT-2:  sluice.async_mark
  // TWO-NEXT:      sluice.wait_marks 1
  // THREE-NEXT:    sluice.wait_marks 2
  // FOUR-NEXT:     sluice.wait_marks 3
  // CHECK-NEXT:    sluice.barrier
  // CHECK-NEXT:    sluice.lds_read
  // TWO:           sluice.wait_marks 0
  // THREE:         sluice.wait_marks 1
  // FOUR:          sluice.wait_marks 2
  // CHECK-NEXT:    sluice.barrier
  // CHECK-NOT:     sluice.
  // CHECK:         scf.for
  // TWO-COUNT-1:     else
  // THREE-COUNT-2:   else
  // FOUR-COUNT-3:    else
  // CHECK:         sluice.wait_marks 0
  // CHECK-NOT:     sluice.
  // CHECK:         sluice.async_dma {{.*}} into %[[V0]]
  // CHECK-NEXT:    sluice.async_mark
  // TWO:           sluice.wait_marks 0
  // THREE:         sluice.wait_marks 1
  // FOUR:          sluice.wait_marks 2
  // CHECK-NEXT:    sluice.barrier
  // CHECK-NOT:     sluice.wait_marks
  // CHECK:         scf.for
  gpu.func @two_loops(%q: !llvm.ptr<1>, %k: !llvm.ptr<1>, %n: i32, %tiles: i32, %stride: i64) kernel {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %qt = sluice.lds_alloc : !tile
    %kt = sluice.lds_alloc {label = "K"} : !tile
    %vt = sluice.lds_alloc {label = "V"} : !tile
    %qc = sluice.async_dma %q[%c0] limit %n stride %stride into %qt : !tile
    sluice.async_wait %qc
    %a = sluice.lds_read %qt[%c0, %c0] : !tile, vector<4xf16>
    scf.for %t = %c0 to %tiles step %c1 : i32 {
      %kc = sluice.async_dma %k[%t] limit %n stride %stride into %kt : !tile
      sluice.async_wait %kc
      %b = sluice.lds_read %kt[%c0, %c0] : !tile, vector<4xf16>
      "test.use"(%a, %b) : (vector<4xf16>, vector<4xf16>) -> ()
    }
    scf.for %t = %c0 to %tiles step %c1 : i32 {
      %vc = sluice.async_dma %k[%t] limit %n stride %stride into %vt : !tile
      sluice.async_wait %vc
      %b = sluice.lds_read %vt[%c0, %c0] : !tile, vector<4xf16>
      "test.use"(%a, %b) : (vector<4xf16>, vector<4xf16>) -> ()
    }
    gpu.return
  }
}
