// RUN: sluice-opt %s --allow-unregistered-dialect --pass-pipeline='builtin.module(gpu.module(gpu.func(annotate-lds-liveness)))' | FileCheck %s
// A second run replaces the marks of the first.
// RUN: sluice-opt %s --allow-unregistered-dialect --pass-pipeline='builtin.module(gpu.module(gpu.func(annotate-lds-liveness,annotate-lds-liveness)))' | FileCheck %s

!tile = !sluice.lds_tile<64x128xf16>

gpu.module @m {

// The tile is used, dead, and used again.
// CHECK-LABEL: gpu.func @two_ranges
// CHECK:         %[[A:.*]] = sluice.lds_alloc
// CHECK-NEXT:    sluice.live_in %[[A]]
// CHECK-NEXT:    sluice.async_dma
// CHECK-NEXT:    sluice.async_wait
// CHECK-NEXT:    sluice.lds_read
// CHECK-NEXT:    sluice.lds_read
// CHECK-NEXT:    sluice.live_out %[[A]]
// CHECK-NEXT:    sluice.barrier
// CHECK-NEXT:    sluice.live_in %[[A]]
// CHECK-NEXT:    sluice.async_dma
// CHECK-NEXT:    sluice.async_wait
// CHECK-NEXT:    sluice.lds_read
// CHECK-NEXT:    sluice.live_out %[[A]]
// CHECK-NEXT:    gpu.return
gpu.func @two_ranges(%k: !llvm.ptr<1>, %n: i32, %s: i64) kernel {
  %a = sluice.lds_alloc : !tile
  %c = sluice.async_dma %k[%n] limit %n stride %s into %a : !tile
  sluice.async_wait %c
  %x = sluice.lds_read %a[%n, %n] : !tile, vector<4xf16>
  %y = sluice.lds_read %a[%n, %n] : !tile, vector<4xf16>
  sluice.barrier
  %d = sluice.async_dma %k[%n] limit %n stride %s into %a : !tile
  sluice.async_wait %d
  %z = sluice.lds_read %a[%n, %n] : !tile, vector<4xf16>
  gpu.return
}

// Each wave writes its own landing rows, like any part. Around a loop their tile stays live, so that no other tile
// takes its bytes between the last read and the next landing.
// CHECK-LABEL: gpu.func @landings
// CHECK:         %[[A:.*]] = sluice.lds_alloc
// CHECK-NEXT:    sluice.live_in %[[A]]
// CHECK-NEXT:    sluice.land_rows
// CHECK:         scf.for
// CHECK-NEXT:      sluice.barrier
// CHECK-NEXT:      sluice.lds_read
// CHECK-NEXT:      sluice.barrier
// CHECK-NEXT:      sluice.land_rows
// CHECK-NEXT:    }
// CHECK-NEXT:    sluice.live_out %[[A]]
gpu.func @landings(%rows: vector<4xi32>, %n: i32) kernel {
  %a = sluice.lds_alloc : !tile
  sluice.land_rows %rows into %a from f8E4M3FNUZ : vector<4xi32>, !tile
  scf.for %t = %n to %n step %n : i32 {
    sluice.barrier
    %x = sluice.lds_read %a[%n, %n] : !tile, vector<4xf16>
    sluice.barrier
    sluice.land_rows %rows into %a from f8E4M3FNUZ : vector<4xi32>, !tile
  }
  gpu.return
}

// Consecutive writes by waves are one range: no single write is known to fill the tile.
// CHECK-LABEL: gpu.func @writes_of_parts
// CHECK:         %[[A:.*]] = sluice.lds_alloc
// CHECK-NEXT:    sluice.live_in %[[A]]
// CHECK-NEXT:    sluice.lds_write
// CHECK-NEXT:    sluice.lds_write
// CHECK-NEXT:    sluice.lds_read
// CHECK-NEXT:    sluice.lds_write
// CHECK-NEXT:    sluice.lds_read
// CHECK-NEXT:    sluice.live_out %[[A]]
// CHECK-NEXT:    gpu.return
gpu.func @writes_of_parts(%v: vector<4xf16>, %n: i32) kernel {
  %a = sluice.lds_alloc : !tile
  sluice.lds_write %v, %a[%n, %n] : vector<4xf16>, !tile
  sluice.lds_write %v, %a[%n, %n] : vector<4xf16>, !tile
  %x = sluice.lds_read %a[%n, %n] : !tile, vector<4xf16>
  sluice.lds_write %v, %a[%n, %n] : vector<4xf16>, !tile
  %y = sluice.lds_read %a[%n, %n] : !tile, vector<4xf16>
  gpu.return
}

// Only one branch reads the tile: it is dead from the start of the other branch.
// CHECK-LABEL: gpu.func @branches
// CHECK:         %[[A:.*]] = sluice.lds_alloc
// CHECK:         sluice.live_in %[[A]]
// CHECK-NEXT:    sluice.async_dma
// CHECK:         scf.if
// CHECK-NEXT:      sluice.barrier
// CHECK-NEXT:      scf.if
// CHECK-NEXT:        sluice.barrier
// CHECK-NEXT:        sluice.lds_read
// CHECK-NEXT:        sluice.live_out %[[A]]
// CHECK-NEXT:        "test.mark"
// CHECK-NEXT:      }
// If the branch is not taken, the tile is dead after it.
// CHECK-NEXT:      sluice.live_out %[[A]]
// CHECK-NEXT:    } else {
// CHECK-NEXT:      sluice.live_out %[[A]]
// CHECK-NEXT:      sluice.barrier
// CHECK-NEXT:    }
// CHECK-NEXT:    gpu.return
gpu.func @branches(%k: !llvm.ptr<1>, %n: i32, %s: i64, %p: i1, %q: i1) kernel {
  %a = sluice.lds_alloc : !tile
  %c = sluice.async_dma %k[%n] limit %n stride %s into %a : !tile
  sluice.async_wait %c
  scf.if %p {
    sluice.barrier
    scf.if %q {
      sluice.barrier
      %x = sluice.lds_read %a[%n, %n] : !tile, vector<4xf16>
      "test.mark"() : () -> ()
    }
  } else {
    sluice.barrier
  }
  gpu.return
}

// The waves that take the branch are unknown, so it is one step: %b is live from before it to after it, and %a, which
// only the branch reads, is live to its end.
// CHECK-LABEL: gpu.func @branch_of_some_waves
// CHECK:         %[[A:.*]] = sluice.lds_alloc
// CHECK:         %[[B:.*]] = sluice.lds_alloc
// CHECK-NEXT:    sluice.live_in %[[A]]
// CHECK-NEXT:    sluice.lds_write
// CHECK-NEXT:    sluice.live_in %[[B]]
// CHECK-NEXT:    scf.if
// CHECK-NEXT:      sluice.lds_read %[[A]]
// CHECK-NEXT:      sluice.lds_write {{.*}}, %[[B]]
// CHECK-NEXT:      sluice.lds_read %[[B]]
// CHECK-NEXT:    }
// CHECK-NEXT:    sluice.live_out %[[A]]
// CHECK-NEXT:    sluice.live_out %[[B]]
// CHECK-NEXT:    gpu.return
gpu.func @branch_of_some_waves(%v: vector<4xf16>, %n: i32, %p: i1) kernel {
  %a = sluice.lds_alloc : !tile
  %b = sluice.lds_alloc : !tile
  sluice.lds_write %v, %a[%n, %n] : vector<4xf16>, !tile
  scf.if %p {
    %x = sluice.lds_read %a[%n, %n] : !tile, vector<4xf16>
    sluice.lds_write %v, %b[%n, %n] : vector<4xf16>, !tile
    %y = sluice.lds_read %b[%n, %n] : !tile, vector<4xf16>
  }
  gpu.return
}

// The first tile is written before the loop and read in it: it is live until the loop has ended. The second is read
// at the head of an iteration and copied again at its end: it is live around the back edge, dead in between, and in
// flight when the loop ends.
// CHECK-LABEL: gpu.func @around_the_back_edge
// CHECK:         %[[Q:.*]] = sluice.lds_alloc
// CHECK:         %[[K:.*]] = sluice.lds_alloc
// CHECK-NEXT:    sluice.live_in %[[Q]]
// CHECK-NEXT:    sluice.async_dma {{.*}} into %[[Q]]
// CHECK-NEXT:    sluice.live_in %[[K]]
// CHECK-NEXT:    sluice.async_dma {{.*}} into %[[K]]
// CHECK-NEXT:    sluice.async_mark
// CHECK-NEXT:    scf.for
// CHECK-NEXT:      sluice.wait_marks 0
// CHECK-NEXT:      sluice.barrier
// CHECK-NEXT:      sluice.lds_read %[[K]]
// CHECK-NEXT:      sluice.live_out %[[K]]
// CHECK-NEXT:      sluice.lds_read %[[Q]]
// CHECK-NEXT:      sluice.barrier
// CHECK-NEXT:      sluice.live_in %[[K]]
// CHECK-NEXT:      sluice.async_dma {{.*}} into %[[K]]
// CHECK-NEXT:      sluice.async_mark
// CHECK-NEXT:    }
// CHECK-NEXT:    "test.mark"
// CHECK-NEXT:    sluice.wait_marks 0
// CHECK-NEXT:    sluice.live_out %[[Q]]
// CHECK-NEXT:    sluice.live_out %[[K]]
// CHECK-NEXT:    gpu.return
gpu.func @around_the_back_edge(%k: !llvm.ptr<1>, %n: i32, %s: i64) kernel {
  %c1 = arith.constant 1 : i32
  %qt = sluice.lds_alloc : !tile
  %kt = sluice.lds_alloc : !tile
  %c = sluice.async_dma %k[%n] limit %n stride %s into %qt : !tile
  %d = sluice.async_dma %k[%n] limit %n stride %s into %kt : !tile
  sluice.async_mark
  scf.for %t = %c1 to %n step %c1 : i32 {
    sluice.wait_marks 0
    sluice.barrier
    %x = sluice.lds_read %kt[%n, %n] : !tile, vector<4xf16>
    %y = sluice.lds_read %qt[%n, %n] : !tile, vector<4xf16>
    sluice.barrier
    %e = sluice.async_dma %k[%t] limit %n stride %s into %kt : !tile
    sluice.async_mark
  }
  "test.mark"() : () -> ()
  sluice.wait_marks 0
  gpu.return
}

// Copies land in the order of their groups. The wait that leaves one group in flight ends the first copy into %b,
// which is never read. It does not end the copy into %a. No wait ends the copy into %a that no mark closes.
// CHECK-LABEL: gpu.func @groups_in_flight
// CHECK:         %[[A:.*]] = sluice.lds_alloc
// CHECK:         %[[B:.*]] = sluice.lds_alloc
// CHECK-NEXT:    sluice.live_in %[[B]]
// CHECK-NEXT:    sluice.async_dma {{.*}} into %[[B]]
// CHECK-NEXT:    sluice.async_mark
// CHECK-NEXT:    sluice.live_in %[[A]]
// CHECK-NEXT:    sluice.async_dma {{.*}} into %[[A]]
// CHECK-NEXT:    sluice.async_mark
// CHECK-NEXT:    sluice.wait_marks 2
// CHECK-NEXT:    sluice.wait_marks 1
// CHECK-NEXT:    sluice.live_out %[[B]]
// CHECK-NEXT:    sluice.barrier
// CHECK-NEXT:    sluice.live_in %[[B]]
// CHECK-NEXT:    sluice.async_dma {{.*}} into %[[B]]
// CHECK-NEXT:    sluice.async_wait
// CHECK-NEXT:    sluice.lds_read %[[B]]
// CHECK-NEXT:    sluice.live_out %[[B]]
// CHECK-NEXT:    sluice.wait_marks 0
// CHECK-NEXT:    sluice.lds_read %[[A]]
// CHECK-NEXT:    sluice.live_out %[[A]]
// CHECK-NEXT:    sluice.live_in %[[A]]
// CHECK-NEXT:    sluice.async_dma {{.*}} into %[[A]]
// CHECK-NEXT:    sluice.wait_marks 0
// CHECK-NEXT:    sluice.lds_read %[[A]]
// CHECK-NEXT:    gpu.return
gpu.func @groups_in_flight(%k: !llvm.ptr<1>, %n: i32, %s: i64, %v: vector<4xf16>) kernel {
  %a = sluice.lds_alloc : !tile
  %b = sluice.lds_alloc : !tile
  %c = sluice.async_dma %k[%n] limit %n stride %s into %b : !tile
  sluice.async_mark
  %d = sluice.async_dma %k[%n] limit %n stride %s into %a : !tile
  sluice.async_mark
  sluice.wait_marks 2
  sluice.wait_marks 1
  sluice.barrier
  %e = sluice.async_dma %k[%n] limit %n stride %s into %b : !tile
  sluice.async_wait %e
  %x = sluice.lds_read %b[%n, %n] : !tile, vector<4xf16>
  sluice.wait_marks 0
  %y = sluice.lds_read %a[%n, %n] : !tile, vector<4xf16>
  %f = sluice.async_dma %k[%n] limit %n stride %s into %a : !tile
  sluice.wait_marks 0
  %z = sluice.lds_read %a[%n, %n] : !tile, vector<4xf16>
  gpu.return
}

// The next iteration may read a part written in the loop. On entry nothing is there, so the first write has the mark;
// after the loop the tile is dead.
// CHECK-LABEL: gpu.func @part_in_loop
// CHECK:         %[[A:.*]] = sluice.lds_alloc
// CHECK-NEXT:    scf.while
// CHECK:         } do {
// CHECK-NEXT:      sluice.live_in %[[A]]
// CHECK-NEXT:      sluice.lds_write
// CHECK-NEXT:      sluice.barrier
// CHECK-NEXT:      sluice.lds_read
// CHECK-NEXT:      sluice.barrier
// CHECK-NEXT:      scf.yield
// CHECK-NEXT:    }
// CHECK-NEXT:    sluice.live_out %[[A]]
// CHECK-NEXT:    gpu.return
gpu.func @part_in_loop(%v: vector<4xf16>, %n: i32) kernel {
  %a = sluice.lds_alloc : !tile
  scf.while : () -> () {
    %p = "test.condition"() : () -> i1
    scf.condition(%p)
  } do {
    sluice.lds_write %v, %a[%n, %n] : vector<4xf16>, !tile
    sluice.barrier
    %x = sluice.lds_read %a[%n, %n] : !tile, vector<4xf16>
    sluice.barrier
    scf.yield
  }
  gpu.return
}

// The condition of a while runs before every iteration: a tile that it reads is live around the loop.
// CHECK-LABEL: gpu.func @read_in_condition
// CHECK:         sluice.live_in %[[A:.*]] :
// CHECK-NEXT:    sluice.lds_write
// CHECK-NEXT:    scf.while
// CHECK-NEXT:      sluice.barrier
// CHECK-NEXT:      sluice.lds_read
// CHECK:         } do {
// CHECK-NEXT:      scf.yield
// CHECK-NEXT:    }
// CHECK-NEXT:    sluice.live_out %[[A]]
gpu.func @read_in_condition(%v: vector<4xf16>, %n: i32) kernel {
  %a = sluice.lds_alloc : !tile
  sluice.lds_write %v, %a[%n, %n] : vector<4xf16>, !tile
  scf.while : () -> () {
    sluice.barrier
    %x = sluice.lds_read %a[%n, %n] : !tile, vector<4xf16>
    %p = "test.condition"(%x) : (vector<4xf16>) -> i1
    scf.condition(%p)
  } do {
    scf.yield
  }
  gpu.return
}

// Waves that meet inside a branch have entered it together: a tile may begin and end in the branch.
// CHECK-LABEL: gpu.func @meeting_further_inside
// CHECK:         scf.if
// CHECK-NEXT:      %[[A:.*]] = sluice.lds_alloc
// CHECK:           scf.for
// CHECK-NEXT:        sluice.live_in %[[A]]
// CHECK-NEXT:        sluice.async_dma
// CHECK-NEXT:        sluice.async_wait
// CHECK-NEXT:        sluice.lds_read
// CHECK-NEXT:        sluice.live_out %[[A]]
// CHECK-NEXT:        sluice.barrier
gpu.func @meeting_further_inside(%k: !llvm.ptr<1>, %n: i32, %s: i64, %p: i1) kernel {
  scf.if %p {
    %a = sluice.lds_alloc : !tile
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    scf.for %t = %c0 to %n step %c1 : i32 {
      %token = sluice.async_dma %k[%t] limit %n stride %s into %a : !tile
      sluice.async_wait %token
      %x = sluice.lds_read %a[%t, %c0] : !tile, vector<4xf16>
      sluice.barrier
    }
  }
  gpu.return
}

// CHECK-LABEL: gpu.func @not_a_kernel
// CHECK-NOT:     live_
// CHECK:         gpu.return
gpu.func @not_a_kernel(%v: vector<4xf16>, %n: i32) {
  %a = sluice.lds_alloc : !tile
  sluice.lds_write %v, %a[%n, %n] : vector<4xf16>, !tile
  %x = sluice.lds_read %a[%n, %n] : !tile, vector<4xf16>
  gpu.return
}

}
