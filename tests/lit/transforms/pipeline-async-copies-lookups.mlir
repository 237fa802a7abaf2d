// Look-ups of pages in a pipelined loop: one iteration ahead of the copies that need them, shared by K and V.
// RUN: sluice-opt %s --allow-unregistered-dialect --pass-pipeline='builtin.module(gpu.module(gpu.func(pipeline-async-copies{stages=2})))' | FileCheck %s
// RUN: sluice-opt %s --allow-unregistered-dialect --pass-pipeline='builtin.module(gpu.module(gpu.func(pipeline-async-copies{stages=3})))' | FileCheck %s --check-prefix=THREE

!tile = !sluice.lds_tile<64x128xf16>

gpu.module @m {
  // The loop carries the entries for its next copies. The entries for the copies after those are looked up after the
  // first copy that uses the old ones, with the first row of the iteration after the next. K and V share them.
  // CHECK-LABEL: gpu.func @shared
  // CHECK-SAME:    %[[K:[a-z0-9]+]]: !llvm.ptr<1>, %[[V:[a-z0-9]+]]: !llvm.ptr<1>, %[[TABLE:[a-z0-9]+]]: !llvm.ptr<1>,
  // CHECK-DAG:     %[[ZERO:.*]] = arith.constant 0 : i32
  // CHECK-DAG:     %[[ROWS:.*]] = arith.constant 64 : i32
  // CHECK:         %[[ROW0:.*]] = arith.muli %[[ZERO]], %[[ROWS]]
  // CHECK:         %[[E0:.*]] = sluice.page_lookup %[[TABLE]][%[[ROW0]]]
  // CHECK:         sluice.async_dma %[[K]]{{.*}} gather %[[E0]]
  // CHECK-NEXT:    sluice.async_mark
  // CHECK:         %[[ONE:.*]] = arith.addi %[[ZERO]], %{{.*}}
  // CHECK-NEXT:    %[[ROW1:.*]] = arith.muli %[[ONE]], %[[ROWS]]
  // CHECK-NEXT:    %[[E1:.*]] = sluice.page_lookup %[[TABLE]][%[[ROW1]]]
  // CHECK-NOT:     sluice.page_lookup
  // CHECK:         sluice.async_dma %[[V]]{{.*}} gather %[[E0]]
  // CHECK-NEXT:    sluice.async_mark
  // CHECK-NOT:     sluice.page_lookup
  // CHECK:         scf.for %[[T:.*]] = {{.*}} iter_args(%[[NEXT:.*]] = %[[E1]]) -> (vector<2xi32>)
  // CHECK-NOT:       sluice.page_lookup
  // CHECK:           %[[T1:.*]] = arith.addi %[[T]], %{{.*}}
  // CHECK:           sluice.async_dma %[[K]]{{.*}} gather %[[NEXT]]
  // CHECK-NEXT:      sluice.async_mark
  // CHECK:           %[[T2:.*]] = arith.addi %[[T1]], %{{.*}}
  // CHECK-NEXT:      %[[ROW2:.*]] = arith.muli %[[T2]], %[[ROWS]]
  // CHECK-NEXT:      %[[E2:.*]] = sluice.page_lookup %[[TABLE]][%[[ROW2]]]
  // CHECK-NOT:       sluice.page_lookup
  // CHECK:           sluice.async_dma %[[V]]{{.*}} gather %[[NEXT]]
  // CHECK-NOT:       sluice.page_lookup
  // CHECK:           %[[LAST:.*]] = scf.if {{.*}} -> (vector<2xi32>) {
  // CHECK-NOT:         sluice.page_lookup
  // CHECK:             sluice.async_dma %[[K]]{{.*}} gather %[[E2]]
  // CHECK:             %[[E3:.*]] = sluice.page_lookup
  // CHECK-NOT:         sluice.page_lookup
  // CHECK:             sluice.async_dma %[[V]]{{.*}} gather %[[E2]]
  // CHECK:             scf.yield %[[E3]] : vector<2xi32>
  // CHECK-NEXT:      } else {
  // CHECK-NEXT:        scf.yield %[[E2]] : vector<2xi32>
  // CHECK-NEXT:      }
  // CHECK-NEXT:      scf.yield %[[LAST]] : vector<2xi32>

  // Two tiles before the loop: the prologue too looks up each tile one iteration ahead.
  // THREE-LABEL: gpu.func @shared
  // THREE-SAME:    %[[K:[a-z0-9]+]]: !llvm.ptr<1>, %[[V:[a-z0-9]+]]: !llvm.ptr<1>,
  // THREE:         %[[E0:.*]] = sluice.page_lookup
  // THREE:         sluice.async_dma %[[K]]{{.*}} gather %[[E0]]
  // THREE:         %[[E1:.*]] = sluice.page_lookup
  // THREE:         sluice.async_dma %[[V]]{{.*}} gather %[[E0]]
  // THREE:         sluice.async_dma %[[K]]{{.*}} gather %[[E1]]
  // THREE:         %[[E2:.*]] = sluice.page_lookup
  // THREE:         sluice.async_dma %[[V]]{{.*}} gather %[[E1]]
  // THREE-NOT:     sluice.page_lookup
  // THREE:         scf.for {{.*}} iter_args(%[[NEXT:.*]] = %[[E2]])
  // THREE:           sluice.async_dma %[[K]]{{.*}} gather %[[NEXT]]
  // THREE:           %[[E3:.*]] = sluice.page_lookup
  // THREE:           sluice.async_dma %[[V]]{{.*}} gather %[[NEXT]]
  // THREE:           scf.if
  // THREE:             sluice.async_dma %[[K]]{{.*}} gather %[[E3]]
  gpu.func @shared(%k: !llvm.ptr<1>, %v: !llvm.ptr<1>, %table: !llvm.ptr<1>, %n: i32, %tiles: i32, %stride: i64,
                   %rows: i32, %page: i64, %row: i32) kernel {
    %pages = sluice.pages of %rows
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c64 = arith.constant 64 : i32
    %kt = sluice.lds_alloc : !tile
    %vt = sluice.lds_alloc : !tile
    scf.for %t = %c0 to %tiles step %c1 : i32 {
      %first = arith.muli %t, %c64 : i32
      %e = sluice.page_lookup %table[%first] limit %n in %pages
      %kc = sluice.async_dma %k[%first] limit %n stride %stride gather %e in %pages stride %page into %kt : !tile
      %vc = sluice.async_dma %v[%first] limit %n stride %stride gather %e in %pages stride %page into %vt : !tile
      sluice.async_wait %kc
      %a = sluice.lds_read %kt[%row, %c0] : !tile, vector<4xf16>
      sluice.async_wait %vc
      %b = sluice.lds_read %vt[%row, %c0] : !tile, vector<4xf16>
      "test.use"(%a, %b) : (vector<4xf16>, vector<4xf16>) -> ()
      sluice.barrier
    }
    gpu.return
  }

  // A look-up for each copy: the loop carries two, and each follows its own copy.
  // CHECK-LABEL: gpu.func @apart
  // CHECK:         scf.for {{.*}} iter_args(%[[OF_K:.*]] = %{{.*}}, %[[OF_V:.*]] = %{{.*}}) -> (vector<2xi32>, vector<2xi32>)
  // CHECK:           sluice.async_dma {{.*}} gather %[[OF_K]]
  // CHECK:           %[[NEXT_K:.*]] = sluice.page_lookup
  // CHECK:           sluice.async_dma {{.*}} gather %[[OF_V]]
  // CHECK:           %[[NEXT_V:.*]] = sluice.page_lookup
  // CHECK:           scf.if
  // CHECK:             sluice.async_dma {{.*}} gather %[[NEXT_K]]
  // CHECK:             sluice.async_dma {{.*}} gather %[[NEXT_V]]
  gpu.func @apart(%k: !llvm.ptr<1>, %v: !llvm.ptr<1>, %table: !llvm.ptr<1>, %other: !llvm.ptr<1>, %n: i32, %tiles: i32,
                  %stride: i64, %rows: i32, %page: i64) kernel {
    %pages = sluice.pages of %rows
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %kt = sluice.lds_alloc : !tile
    %vt = sluice.lds_alloc : !tile
    scf.for %t = %c0 to %tiles step %c1 : i32 {
      %ek = sluice.page_lookup %table[%t] limit %n in %pages
      %ev = sluice.page_lookup %other[%t] limit %n in %pages
      %kc = sluice.async_dma %k[%t] limit %n stride %stride gather %ek in %pages stride %page into %kt : !tile
      %vc = sluice.async_dma %v[%t] limit %n stride %stride gather %ev in %pages stride %page into %vt : !tile
      sluice.async_wait %kc
      sluice.async_wait %vc
    }
    gpu.return
  }

  // The prologue and its look-ups go after a copy before the loop, and before the wait that both share. The loop's
  // own carried values come before the entries, and the loop yields only its own.
  // CHECK-LABEL: gpu.func @behind_an_earlier_copy
  // CHECK:         %[[EARLIER:.*]] = sluice.page_lookup
  // CHECK-NEXT:    sluice.async_dma {{.*}} gather %[[EARLIER]]
  // CHECK-NEXT:    sluice.async_mark
  // CHECK:         %[[E1:.*]] = sluice.page_lookup
  // CHECK:         sluice.async_dma {{.*}} gather %[[E1]]
  // CHECK-NEXT:    sluice.async_mark
  // CHECK:         %[[E2:.*]] = sluice.page_lookup
  // CHECK-NEXT:    sluice.wait_marks 1
  // CHECK-NEXT:    sluice.barrier
  // CHECK-NEXT:    %[[FIRST:.*]] = sluice.lds_read
  // CHECK:         %[[LOOP:.*]]:2 = scf.for {{.*}} iter_args(%{{.*}} = %[[FIRST]], %[[NEXT:.*]] = %[[E2]])
  // CHECK:           sluice.async_dma {{.*}} gather %[[NEXT]]
  // CHECK:         "test.use"(%[[LOOP]]#0)
  gpu.func @behind_an_earlier_copy(%k: !llvm.ptr<1>, %table: !llvm.ptr<1>, %n: i32, %tiles: i32, %stride: i64,
                                   %rows: i32, %page: i64, %row: i32) kernel {
    %pages = sluice.pages of %rows
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %q = sluice.lds_alloc : !tile
    %kt = sluice.lds_alloc : !tile
    %e0 = sluice.page_lookup %table[%c0] limit %n in %pages
    %qc = sluice.async_dma %k[%c0] limit %n stride %stride gather %e0 in %pages stride %page into %q : !tile
    sluice.async_wait %qc
    %x = sluice.lds_read %q[%row, %c0] : !tile, vector<4xf16>
    %c64 = arith.constant 64 : i32
    %r = scf.for %t = %c1 to %tiles step %c1 iter_args(%s = %x) -> vector<4xf16> : i32 {
      %first = arith.muli %t, %c64 : i32
      %e = sluice.page_lookup %table[%first] limit %n in %pages
      %kc = sluice.async_dma %k[%first] limit %n stride %stride gather %e in %pages stride %page into %kt : !tile
      sluice.async_wait %kc
      %a = sluice.lds_read %kt[%row, %c0] : !tile, vector<4xf16>
      %b = arith.addf %a, %s : vector<4xf16>
      sluice.barrier
      scf.yield %b : vector<4xf16>
    }
    "test.use"(%r) : (vector<4xf16>) -> ()
    gpu.return
  }

  // An operand of a look-up is only known after the copies before the loop, so the prologue follows them.
  // CHECK-LABEL: gpu.func @limit_from_behind
  // CHECK:         sluice.async_dma
  // CHECK-NEXT:    sluice.async_mark
  // CHECK-NEXT:    sluice.wait_marks 0
  // CHECK:         "test.limit"
  // CHECK:         sluice.page_lookup
  // CHECK:         scf.for
  gpu.func @limit_from_behind(%k: !llvm.ptr<1>, %table: !llvm.ptr<1>, %n: i32, %tiles: i32, %stride: i64, %rows: i32,
                              %page: i64, %row: i32) kernel {
    %pages = sluice.pages of %rows
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %q = sluice.lds_alloc : !tile
    %kt = sluice.lds_alloc : !tile
    %qc = sluice.async_dma %k[%c0] limit %n stride %stride into %q : !tile
    sluice.async_wait %qc
    sluice.barrier
    %limit = "test.limit"() : () -> i32
    scf.for %t = %c1 to %tiles step %c1 : i32 {
      %e = sluice.page_lookup %table[%t] limit %limit in %pages
      %kc = sluice.async_dma %k[%t] limit %n stride %stride gather %e in %pages stride %page into %kt : !tile
      sluice.async_wait %kc
    }
    gpu.return
  }

  // Entries from before the loop are like any other operand.
  // CHECK-LABEL: gpu.func @one_for_all
  // CHECK:         %[[E:.*]] = sluice.page_lookup
  // CHECK:         sluice.async_dma {{.*}} gather %[[E]]
  // CHECK:         scf.for {{.*}} {
  // CHECK:           sluice.async_dma {{.*}} gather %[[E]]
  // CHECK-NOT:     sluice.page_lookup
  // CHECK:         gpu.return
  gpu.func @one_for_all(%k: !llvm.ptr<1>, %table: !llvm.ptr<1>, %n: i32, %tiles: i32, %stride: i64, %rows: i32,
                        %page: i64) kernel {
    %pages = sluice.pages of %rows
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %kt = sluice.lds_alloc : !tile
    %e = sluice.page_lookup %table[%c0] limit %n in %pages
    scf.for %t = %c0 to %tiles step %c1 : i32 {
      %kc = sluice.async_dma %k[%c0] limit %n stride %stride gather %e in %pages stride %page into %kt : !tile
      sluice.async_wait %kc
    }
    gpu.return
  }

  // Which rows of a tile were found is computed with the entries that its copy takes, and carried to the iteration that
  // works on the tile: one value with two stages, two with three.
  // CHECK-LABEL: gpu.func @found
  // CHECK:         %[[E0:.*]] = sluice.page_lookup
  // CHECK:         %[[F0:.*]] = sluice.found_rows %[[E0]]
  // CHECK:         sluice.async_dma {{.*}} gather %[[E0]]
  // CHECK:         %[[E1:.*]] = sluice.page_lookup
  // CHECK:         scf.for {{.*}} iter_args(%[[E:.*]] = %[[E1]], %[[F:.*]] = %[[F0]]) -> (vector<2xi32>, i32)
  // CHECK:           %[[F1:.*]] = sluice.found_rows %[[E]]
  // CHECK:           sluice.async_dma {{.*}} gather %[[E]]
  // CHECK:           %[[E2:.*]] = sluice.page_lookup
  // CHECK:           "test.use"(%[[F]],
  // CHECK:           scf.if
  // CHECK:             %[[F2:.*]] = sluice.found_rows %[[E2]]
  // CHECK:             %[[E3:.*]] = sluice.page_lookup
  // CHECK:             "test.use"(%[[F1]],
  // CHECK:             scf.yield %[[E3]], %[[F2]]
  // CHECK-NEXT:      } else {
  // CHECK-NEXT:        scf.yield %[[E2]], %[[F1]]

  // THREE-LABEL: gpu.func @found
  // THREE:         %[[F0:.*]] = sluice.found_rows
  // THREE:         %[[F1:.*]] = sluice.found_rows
  // THREE:         scf.for {{.*}} iter_args(%[[E:.*]] = %{{.*}}, %[[FA:.*]] = %[[F0]], %[[FB:.*]] = %[[F1]])
  // THREE:           %[[F2:.*]] = sluice.found_rows %[[E]]
  // THREE:           "test.use"(%[[FA]],
  // THREE:           %[[IF:.*]]:3 = scf.if
  // THREE:             %[[F3:.*]] = sluice.found_rows
  // THREE:             "test.use"(%[[FB]],
  // THREE:             scf.yield %{{.*}}, %[[F2]], %[[F3]]
  // THREE:           scf.if
  // THREE:             "test.use"(%[[IF]]#1,
  gpu.func @found(%k: !llvm.ptr<1>, %table: !llvm.ptr<1>, %n: i32, %tiles: i32, %stride: i64, %rows: i32, %page: i64,
                  %row: i32, %last: i32, %all: i1) kernel {
    %pages = sluice.pages of %rows last %last and %last
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c64 = arith.constant 64 : i32
    %kt = sluice.lds_alloc : !tile
    scf.for %t = %c0 to %tiles step %c1 : i32 {
      %first = arith.muli %t, %c64 : i32
      %e = sluice.page_lookup %table[%first] limit %n in %pages
      %found = sluice.found_rows %e in %pages or %all
      %kc = sluice.async_dma %k[%first] limit %n stride %stride gather %e in %pages stride %page into %kt : !tile
      sluice.async_wait %kc
      %a = sluice.lds_read %kt[%row, %c0] : !tile, vector<4xf16>
      "test.use"(%found, %a) : (i32, vector<4xf16>) -> ()
      sluice.barrier
    }
    gpu.return
  }
}
