// Copies through registers: the next rows have arrived, and land after the barrier before the one that announces
// them.
// RUN: sluice-opt %s --allow-unregistered-dialect --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(gpu.module(gpu.func(pipeline-async-copies{stages=2})))' | FileCheck %s
// RUN: sluice-opt %s --allow-unregistered-dialect --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(gpu.module(gpu.func(pipeline-async-copies{stages=3})))' | FileCheck %s

!tile = !sluice.lds_tile<64x128xf16>

gpu.module @m {
  // As in attention: a tile of K before the loop, and K and V in it, in one tile each, for any number of stages. All
  // rows are fetched together. V's rows land one iteration later. The pass adds no marks, and no waits for marks.
  // CHECK-LABEL: gpu.func @attention
  // CHECK-SAME:    %[[K:[a-z0-9]+]]: !llvm.ptr<1>, %[[V:[a-z0-9]+]]: !llvm.ptr<1>,
  // CHECK-SAME:    stages = 2 : i32
  // CHECK-DAG:     %[[FIRST:.*]] = sluice.lds_alloc {label = "first K"}
  // CHECK-DAG:     %[[KT:.*]] = sluice.lds_alloc {label = "K"}
  // CHECK-DAG:     %[[VT:.*]] = sluice.lds_alloc {label = "V"}
  // CHECK-NOT:     sluice.async
  // CHECK:         %[[F:.*]] = sluice.fetch_rows %[[K]]{{.*}} for !sluice.lds_tile<64x128xf16> from f8E4M3FNUZ {close_rows} : vector<4xi32>
  // CHECK:         %[[E0:.*]] = sluice.page_lookup
  // CHECK:         %[[K0:.*]] = sluice.fetch_rows %[[K]]{{.*}} gather %[[E0]]
  // CHECK:         %[[E1:.*]] = sluice.page_lookup
  // CHECK:         %[[V0:.*]] = sluice.fetch_rows %[[V]]{{.*}} gather %[[E0]]
  // CHECK:         sluice.land_rows %[[F]] into %[[FIRST]]
  // CHECK-NEXT:    sluice.barrier
  // CHECK-NEXT:    sluice.lds_read %[[FIRST]]
  // CHECK-NEXT:    sluice.land_rows %[[K0]] into %[[KT]]
  // CHECK-NEXT:    sluice.barrier
  // CHECK:         scf.for %[[T:.*]] = {{.*}} step %c1_i32{{.*}} iter_args(%[[E:.*]] = %[[E1]], %[[VR:.*]] = %[[V0]])
  // CHECK-NEXT:      sluice.land_rows %[[VR]] into %[[VT]]
  // CHECK:           %[[T1:.*]] = arith.addi %[[T]]
  // CHECK:           %[[K1:.*]] = sluice.fetch_rows %[[K]][%{{.*}}]{{.*}} gather %[[E]]
  // CHECK:           %[[E2:.*]] = sluice.page_lookup
  // CHECK-NEXT:      sluice.lds_read %[[KT]]
  // CHECK-NEXT:      sluice.barrier
  // CHECK-NEXT:      sluice.land_rows %[[K1]] into %[[KT]]
  // CHECK:           %[[V1:.*]] = sluice.fetch_rows %[[V]]{{.*}} gather %[[E]]
  // CHECK-NEXT:      sluice.lds_read %[[VT]]
  // CHECK-NEXT:      sluice.barrier
  // CHECK-NEXT:      scf.yield %[[E2]], %[[V1]]
  // CHECK-NEXT:    }
  // CHECK-NEXT:    gpu.return
  gpu.func @attention(%k: !llvm.ptr<1>, %v: !llvm.ptr<1>, %table: !llvm.ptr<1>, %n: i32, %tiles: i32, %stride: i64,
                      %rows: i32) kernel attributes {known_block_size = array<i32: 512, 1, 1>} {
    %pages = sluice.pages of %rows
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %first = sluice.lds_alloc {label = "first K"} : !tile
    %kt = sluice.lds_alloc {label = "K"} : !tile
    %vt = sluice.lds_alloc {label = "V"} : !tile
    %fc = sluice.async_dma %k[%c0] limit %n stride %stride into %first from f8E4M3FNUZ {close_rows} : !tile
    sluice.async_wait %fc
    %f = sluice.lds_read %first[%c0, %c0] : !tile, vector<4xf16>
    scf.for %t = %c0 to %tiles step %c1 : i32 {
      %e = sluice.page_lookup %table[%t] limit %n in %pages
      %kc = sluice.async_dma %k[%t] limit %n stride %stride gather %e in %pages stride %stride into %kt from f8E4M3FNUZ : !tile
      %vc = sluice.async_dma %v[%t] limit %n stride %stride gather %e in %pages stride %stride into %vt from f8E4M3FNUZ : !tile
      sluice.async_wait %kc
      %a = sluice.lds_read %kt[%c0, %c0] : !tile, vector<4xf16>
      sluice.async_wait %vc
      %b = sluice.lds_read %vt[%c0, %c0] : !tile, vector<4xf16>
      sluice.barrier
    }
    gpu.return
  }

  // Elements that are not converted land the same way, four dwords of 8 columns.
  // CHECK-LABEL: gpu.func @same_elements
  // CHECK-SAME:    stages = 2 : i32
  // CHECK-COUNT-1: sluice.lds_alloc
  // CHECK-NOT:     sluice.lds_alloc
  // CHECK:         %[[K0:.*]] = sluice.fetch_rows {{.*}} from f16 : vector<8xi32>
  // CHECK-NEXT:    sluice.land_rows %[[K0]] into %[[KT:.*]] from f16
  // CHECK-NEXT:    sluice.barrier
  // CHECK:         scf.for
  // CHECK-NOT:       sluice.barrier
  // CHECK:           %[[K1:.*]] = sluice.fetch_rows {{.*}} from f16 : vector<8xi32>
  // CHECK-NEXT:      sluice.lds_read %[[KT]]
  // CHECK-NEXT:      sluice.barrier
  // CHECK-NEXT:      sluice.land_rows %[[K1]] into %[[KT]] from f16
  // CHECK-NEXT:      sluice.barrier
  // CHECK-NEXT:    }
  gpu.func @same_elements(%k: !llvm.ptr<1>, %n: i32, %tiles: i32, %stride: i64) kernel
      attributes {known_block_size = array<i32: 512, 1, 1>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %kt = sluice.lds_alloc : !tile
    scf.for %t = %c0 to %tiles step %c1 : i32 {
      %kc = sluice.async_dma %k[%t] limit %n stride %stride into %kt from f16 : !tile
      sluice.async_wait %kc
      %a = sluice.lds_read %kt[%c0, %c0] : !tile, vector<4xf16>
      sluice.barrier
    }
    gpu.return
  }

  // Values that only the next iteration needs are carried in other registers than those that this one uses: two
  // iterations overlap. After the last iteration they are not needed. LDS still holds one tile.
  // CHECK-LABEL: gpu.func @scores
  // CHECK-COUNT-1: sluice.lds_alloc
  // CHECK-NOT:     sluice.lds_alloc
  // CHECK:         sluice.land_rows %{{.*}} into %[[KT:.*]] from
  // CHECK:         %[[LOOP:.*]]:2 = scf.for {{.*}} step %c2_i32{{.*}} iter_args(%[[S:.*]] = %{{.*}}, %[[O:.*]] = %{{.*}})
  // CHECK-NOT:       sluice.barrier
  // CHECK:           %[[S1:.*]] = sluice.lds_read %[[KT]]
  // CHECK-NEXT:      %[[O1:.*]] = arith.addf %[[O]], %[[S]]
  // CHECK:           sluice.land_rows %{{.*}} into %[[KT]] from
  // CHECK-NEXT:      sluice.barrier
  // CHECK:           scf.if
  // CHECK:             %[[S2:.*]] = sluice.lds_read %[[KT]]
  // CHECK-NEXT:        %[[O2:.*]] = arith.addf %[[O1]], %[[S1]]
  // CHECK:             scf.yield %[[S2]], %[[O2]]
  // CHECK-NEXT:      } else {
  // CHECK-NEXT:        %[[NONE:.*]] = llvm.mlir.poison
  // CHECK-NEXT:        scf.yield %[[NONE]], %[[O1]]
  // CHECK:         "test.use"(%[[LOOP]]#1)
  gpu.func @scores(%k: !llvm.ptr<1>, %n: i32, %tiles: i32, %stride: i64, %s: vector<4xf16>) kernel
      attributes {known_block_size = array<i32: 512, 1, 1>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %kt = sluice.lds_alloc : !tile
    %r:2 = scf.for %t = %c0 to %tiles step %c1 iter_args(%scores = %s, %output = %s) -> (vector<4xf16>, vector<4xf16>) : i32 {
      %kc = sluice.async_dma %k[%t] limit %n stride %stride into %kt from f16 : !tile
      sluice.async_wait %kc
      %next = sluice.lds_read %kt[%c0, %c0] : !tile, vector<4xf16>
      %sum = arith.addf %output, %scores : vector<4xf16>
      sluice.barrier
      scf.yield %next, %sum : vector<4xf16>, vector<4xf16>
    }
    "test.use"(%r#1) : (vector<4xf16>) -> ()
    gpu.return
  }

  // A tile that is read until the end of the iteration has a barrier after its reads.
  // CHECK-LABEL: gpu.func @read_to_the_end
  // CHECK:         sluice.land_rows
  // CHECK-NEXT:    sluice.barrier
  // CHECK:         scf.for
  // CHECK-NOT:       sluice.barrier
  // CHECK:           %[[NEXT:.*]] = sluice.fetch_rows
  // CHECK-NEXT:      sluice.lds_read
  // CHECK-NEXT:      sluice.barrier
  // CHECK-NEXT:      sluice.land_rows %[[NEXT]]
  // CHECK-NEXT:      sluice.barrier
  // CHECK-NEXT:    }
  gpu.func @read_to_the_end(%k: !llvm.ptr<1>, %n: i32, %tiles: i32, %stride: i64) kernel
      attributes {known_block_size = array<i32: 512, 1, 1>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %kt = sluice.lds_alloc : !tile
    scf.for %t = %c0 to %tiles step %c1 : i32 {
      %kc = sluice.async_dma %k[%t] limit %n stride %stride into %kt from f8E4M3FNUZ : !tile
      sluice.async_wait %kc
      %a = sluice.lds_read %kt[%c0, %c0] : !tile, vector<4xf16>
      sluice.barrier
    }
    gpu.return
  }

  // Parts of a row share one barrier: the rows of both parts that were fetched an iteration ago land.
  // CHECK-LABEL: gpu.func @parts
  // CHECK:         scf.for {{.*}} iter_args(%[[A:.*]] = %{{.*}}, %[[B:.*]] = %{{.*}})
  // CHECK-NEXT:      sluice.land_rows %[[A]]
  // CHECK-NEXT:      sluice.land_rows %[[B]]
  // CHECK:           %[[NEXT:.*]] = sluice.fetch_rows
  // CHECK-NEXT:      sluice.lds_read
  // CHECK-NEXT:      sluice.barrier
  // CHECK-NEXT:      sluice.land_rows %[[NEXT]]
  // CHECK:           sluice.fetch_rows
  // CHECK:           sluice.fetch_rows
  // CHECK-NEXT:      sluice.lds_read
  // CHECK-NEXT:      sluice.lds_read
  // CHECK-NEXT:      sluice.barrier
  // CHECK-NEXT:      scf.yield
  gpu.func @parts(%k: !llvm.ptr<1>, %n: i32, %tiles: i32, %stride: i64) kernel
      attributes {known_block_size = array<i32: 512, 1, 1>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %kt = sluice.lds_alloc : !tile
    %at = sluice.lds_alloc : !tile
    %bt = sluice.lds_alloc : !tile
    scf.for %t = %c0 to %tiles step %c1 : i32 {
      %kc = sluice.async_dma %k[%t] limit %n stride %stride into %kt from f8E4M3FNUZ : !tile
      %ac = sluice.async_dma %k[%t] limit %n stride %stride into %at from f8E4M3FNUZ : !tile
      %bc = sluice.async_dma %k[%t] limit %n stride %stride into %bt from f8E4M3FNUZ : !tile
      sluice.async_wait %kc
      %k0 = sluice.lds_read %kt[%c0, %c0] : !tile, vector<4xf16>
      sluice.async_wait %ac
      sluice.async_wait %bc
      %a0 = sluice.lds_read %at[%c0, %c0] : !tile, vector<4xf16>
      %b0 = sluice.lds_read %bt[%c0, %c0] : !tile, vector<4xf16>
      sluice.barrier
    }
    gpu.return
  }

  // A direct copy before the loop has its mark, and its wait covers all of the pipeline's loads.
  // CHECK-LABEL: gpu.func @direct_before
  // CHECK:         sluice.async_dma
  // CHECK-NEXT:    sluice.async_mark
  // CHECK:         %[[ROWS:.*]] = sluice.fetch_rows
  // CHECK:         sluice.wait_marks 0
  // CHECK-NEXT:    sluice.barrier
  // CHECK-NEXT:    sluice.lds_read
  // CHECK-NEXT:    sluice.land_rows %[[ROWS]]
  // CHECK:         scf.for
  // CHECK-NOT:     sluice.wait_marks
  gpu.func @direct_before(%q: !llvm.ptr<1>, %k: !llvm.ptr<1>, %n: i32, %tiles: i32, %stride: i64) kernel
      attributes {known_block_size = array<i32: 512, 1, 1>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %qt = sluice.lds_alloc : !tile
    %kt = sluice.lds_alloc : !tile
    %qc = sluice.async_dma %q[%c0] limit %n stride %stride into %qt : !tile
    sluice.async_wait %qc
    %q0 = sluice.lds_read %qt[%c0, %c0] : !tile, vector<4xf16>
    scf.for %t = %c0 to %tiles step %c1 : i32 {
      %kc = sluice.async_dma %k[%t] limit %n stride %stride into %kt from f8E4M3FNUZ : !tile
      sluice.async_wait %kc
      %a = sluice.lds_read %kt[%c0, %c0] : !tile, vector<4xf16>
      sluice.barrier
    }
    gpu.return
  }
}

// -----

!tile = !sluice.lds_tile<64x128xf16>
// CHECK-LABEL: gpu.func @some
// CHECK-NOT:   sluice.fetch_rows
gpu.module @m {
  gpu.func @some(%k: !llvm.ptr<1>, %n: i32, %tiles: i32, %stride: i64) kernel
      attributes {known_block_size = array<i32: 512, 1, 1>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %kt = sluice.lds_alloc : !tile
    %vt = sluice.lds_alloc : !tile
    // expected-remark@+1 {{not pipelined: some of its copies go through registers and some do not}}
    scf.for %t = %c0 to %tiles step %c1 : i32 {
      %kc = sluice.async_dma %k[%t] limit %n stride %stride into %kt : !tile
      %vc = sluice.async_dma %k[%t] limit %n stride %stride into %vt from f8E4M3FNUZ : !tile
      sluice.async_wait %kc
      sluice.async_wait %vc
    }
    gpu.return
  }
}

// -----

!tile = !sluice.lds_tile<64x128xf16>
gpu.module @m {
  // expected-error@+1 {{pipeline-async-copies: known_block_size is missing; a copy through registers is divided among all lanes}}
  gpu.func @no_block_size(%k: !llvm.ptr<1>, %n: i32, %stride: i64) kernel {
    %kt = sluice.lds_alloc : !tile
    %kc = sluice.async_dma %k[%n] limit %n stride %stride into %kt from f8E4M3FNUZ : !tile
    sluice.async_wait %kc
    gpu.return
  }
}
