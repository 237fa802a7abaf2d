// RUN: sluice-opt %s --allow-unregistered-dialect --pass-pipeline='builtin.module(gpu.module(gpu.func(annotate-lds-liveness,reuse-lds)))' 2>/dev/null | FileCheck %s
// Running both again changes nothing.
// RUN: sluice-opt %s --allow-unregistered-dialect --pass-pipeline='builtin.module(gpu.module(gpu.func(annotate-lds-liveness,reuse-lds,annotate-lds-liveness,reuse-lds)))' 2>/dev/null | FileCheck %s
// RUN: sluice-opt %s --allow-unregistered-dialect --pass-pipeline='builtin.module(gpu.module(gpu.func(annotate-lds-liveness,reuse-lds)))' 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK

!tile = !sluice.lds_tile<64x128xf16>
!small = !sluice.lds_tile<5x40xf16>
!output = !sluice.lds_tile<256x128xf16>

gpu.module @m {

// %b takes over the bytes of %a, which other waves may still be reading.
// REMARK: remark: one_after_the_other: 16384 bytes of LDS, 16384 saved by reuse
// CHECK-LABEL: gpu.func @one_after_the_other
// CHECK-SAME:    sluice.lds = {arena_bytes = 16384 : i32, bytes_without_reuse = 32768 : i32, tiles = [
// CHECK-SAME:      "tile 0 (64x128xf16, 16384 bytes) at 0, 1 live ranges, shares bytes with 1",
// CHECK-SAME:      "tile 1 (64x128xf16, 16384 bytes) at 0, 1 live ranges, shares bytes with 0"]}
// CHECK:         %[[A:.*]] = sluice.lds_alloc {offset = 0 : i32}
// CHECK:         %[[B:.*]] = sluice.lds_alloc {offset = 0 : i32}
// CHECK-NOT:     sluice.barrier
// CHECK:         sluice.lds_read %[[A]]
// CHECK-NEXT:    sluice.live_out %[[A]]
// CHECK-NEXT:    sluice.barrier
// CHECK-NEXT:    sluice.live_in %[[B]]
// CHECK-NEXT:    sluice.lds_write
// CHECK-NOT:     sluice.barrier
// CHECK:         gpu.return
gpu.func @one_after_the_other(%v: vector<4xf16>, %n: i32) kernel {
  %a = sluice.lds_alloc : !tile
  %b = sluice.lds_alloc : !tile
  sluice.lds_write %v, %a[%n, %n] : vector<4xf16>, !tile
  %x = sluice.lds_read %a[%n, %n] : !tile, vector<4xf16>
  sluice.lds_write %v, %b[%n, %n] : vector<4xf16>, !tile
  %y = sluice.lds_read %b[%n, %n] : !tile, vector<4xf16>
  gpu.return
}

// Both are live at once: the pass saves nothing, and adds neither a remark nor a barrier.
// CHECK-LABEL: gpu.func @at_once
// CHECK-SAME:    arena_bytes = 32768
// CHECK-NOT:     sluice.barrier
// CHECK:         gpu.return
gpu.func @at_once(%v: vector<4xf16>, %n: i32) kernel {
  %a = sluice.lds_alloc : !tile
  %b = sluice.lds_alloc : !tile
  sluice.lds_write %v, %a[%n, %n] : vector<4xf16>, !tile
  sluice.lds_write %v, %b[%n, %n] : vector<4xf16>, !tile
  %x = sluice.lds_read %a[%n, %n] : !tile, vector<4xf16>
  %y = sluice.lds_read %b[%n, %n] : !tile, vector<4xf16>
  gpu.return
}

// The existing barrier is enough on the path through the branch, but not on the other.
// REMARK: remark: barrier_on_one_path: 16384 bytes of LDS, 16384 saved by reuse
// CHECK-LABEL: gpu.func @barrier_on_one_path
// CHECK:         scf.if
// CHECK-NEXT:      sluice.barrier
// CHECK-NEXT:    }
// CHECK-NEXT:    sluice.barrier
// CHECK-NEXT:    sluice.live_in
// CHECK-NEXT:    sluice.lds_write
// REMARK: remark: barrier_on_every_path: 16384 bytes of LDS, 16384 saved by reuse
// CHECK-LABEL: gpu.func @barrier_on_every_path
// CHECK:         scf.if
// CHECK-NEXT:      sluice.barrier
// CHECK-NEXT:    } else {
// CHECK-NEXT:      sluice.barrier
// CHECK-NEXT:    }
// CHECK-NEXT:    sluice.live_in
// CHECK-NEXT:    sluice.lds_write
gpu.func @barrier_on_one_path(%v: vector<4xf16>, %n: i32, %p: i1) kernel {
  %a = sluice.lds_alloc : !tile
  %b = sluice.lds_alloc : !tile
  sluice.lds_write %v, %a[%n, %n] : vector<4xf16>, !tile
  %x = sluice.lds_read %a[%n, %n] : !tile, vector<4xf16>
  scf.if %p {
    sluice.barrier
  }
  sluice.lds_write %v, %b[%n, %n] : vector<4xf16>, !tile
  %y = sluice.lds_read %b[%n, %n] : !tile, vector<4xf16>
  gpu.return
}
gpu.func @barrier_on_every_path(%v: vector<4xf16>, %n: i32, %p: i1) kernel {
  %a = sluice.lds_alloc : !tile
  %b = sluice.lds_alloc : !tile
  sluice.lds_write %v, %a[%n, %n] : vector<4xf16>, !tile
  %x = sluice.lds_read %a[%n, %n] : !tile, vector<4xf16>
  scf.if %p {
    sluice.barrier
  } else {
    sluice.barrier
  }
  sluice.lds_write %v, %b[%n, %n] : vector<4xf16>, !tile
  %y = sluice.lds_read %b[%n, %n] : !tile, vector<4xf16>
  gpu.return
}

// A barrier before the wait does not show that the copies of other waves have landed.
// REMARK: remark: landing: 16384 bytes of LDS, 16384 saved by reuse
// CHECK-LABEL: gpu.func @landing
// CHECK:         sluice.lds_read
// CHECK:         sluice.async_dma
// CHECK-NEXT:    sluice.async_mark
// CHECK-NEXT:    sluice.barrier
// CHECK-NEXT:    sluice.wait_marks 0
// CHECK-NEXT:  }
// CHECK-NEXT:  sluice.live_out
// CHECK-NEXT:  sluice.barrier
// CHECK-NEXT:  sluice.live_in
// CHECK-NEXT:  sluice.lds_write
gpu.func @landing(%k: !llvm.ptr<1>, %n: i32, %s: i64, %v: vector<4xf16>) kernel {
  %a = sluice.lds_alloc : !tile
  %b = sluice.lds_alloc : !tile
  %c = sluice.async_dma %k[%n] limit %n stride %s into %a : !tile
  sluice.async_wait %c
  sluice.barrier
  scf.for %t = %n to %n step %n : i32 {
    %x = sluice.lds_read %a[%n, %n] : !tile, vector<4xf16>
    sluice.barrier
    %d = sluice.async_dma %k[%n] limit %n stride %s into %a : !tile
    sluice.async_mark
    sluice.barrier
    sluice.wait_marks 0
  }
  sluice.lds_write %v, %b[%n, %n] : vector<4xf16>, !tile
  %y = sluice.lds_read %b[%n, %n] : !tile, vector<4xf16>
  gpu.return
}

// Around a loop %b takes over %a's bytes, and %a takes over %b's. The barrier after the reads of %b covers the back
// edge; the one in between is missing.
// REMARK: remark: around_a_loop: 16384 bytes of LDS, 16384 saved by reuse
// CHECK-LABEL: gpu.func @around_a_loop
// CHECK:         scf.for
// CHECK-NEXT:      sluice.live_in %[[A:.*]] :
// CHECK-NEXT:      sluice.async_dma {{.*}} into %[[A]]
// CHECK-NEXT:      sluice.async_wait
// CHECK-NEXT:      sluice.lds_read %[[A]]
// CHECK-NEXT:      sluice.live_out %[[A]]
// CHECK-NEXT:      sluice.barrier
// CHECK-NEXT:      sluice.live_in %[[B:.*]] :
// CHECK-NEXT:      sluice.async_dma {{.*}} into %[[B]]
// CHECK-NEXT:      sluice.async_wait
// CHECK-NEXT:      sluice.lds_read %[[B]]
// CHECK-NEXT:      sluice.live_out %[[B]]
// CHECK-NEXT:      sluice.barrier
// CHECK-NEXT:    }
gpu.func @around_a_loop(%k: !llvm.ptr<1>, %n: i32, %s: i64) kernel {
  %a = sluice.lds_alloc : !tile
  %b = sluice.lds_alloc : !tile
  scf.for %t = %n to %n step %n : i32 {
    %c = sluice.async_dma %k[%n] limit %n stride %s into %a : !tile
    sluice.async_wait %c
    %x = sluice.lds_read %a[%n, %n] : !tile, vector<4xf16>
    %d = sluice.async_dma %k[%n] limit %n stride %s into %b : !tile
    sluice.async_wait %d
    %y = sluice.lds_read %b[%n, %n] : !tile, vector<4xf16>
    sluice.barrier
  }
  gpu.return
}

// The same without the barrier: the only access that needs it comes around the back edge.
// REMARK: remark: over_the_back_edge: 16384 bytes of LDS, 16384 saved by reuse
// CHECK-LABEL: gpu.func @over_the_back_edge
// CHECK:         scf.for
// CHECK-NEXT:      sluice.barrier
// CHECK-NEXT:      sluice.live_in %[[A:.*]] :
// CHECK-NEXT:      sluice.async_dma {{.*}} into %[[A]]
// CHECK:           sluice.barrier
// CHECK-NEXT:      sluice.live_in %[[B:.*]] :
// CHECK-NOT:       sluice.barrier
// CHECK:         }
gpu.func @over_the_back_edge(%k: !llvm.ptr<1>, %n: i32, %s: i64) kernel {
  %a = sluice.lds_alloc : !tile
  %b = sluice.lds_alloc : !tile
  scf.for %t = %n to %n step %n : i32 {
    %c = sluice.async_dma %k[%n] limit %n stride %s into %a : !tile
    sluice.async_wait %c
    %x = sluice.lds_read %a[%n, %n] : !tile, vector<4xf16>
    sluice.barrier
    %d = sluice.async_dma %k[%n] limit %n stride %s into %b : !tile
    sluice.async_wait %d
    %y = sluice.lds_read %b[%n, %n] : !tile, vector<4xf16>
  }
  gpu.return
}

// The shape of an attention kernel: a first tile of keys, read while the first copies of the loop are in flight; two
// slots each of K and V; the output, staged after the loop. %first shares with a slot that is first copied into
// inside the loop, after its barrier. The output takes all bytes, after a new barrier, because the copies have only
// just landed.
// REMARK: remark: attention: 65536 bytes of LDS, 81920 saved by reuse
// CHECK-LABEL: gpu.func @attention
// CHECK-SAME:    arena_bytes = 65536 : i32, bytes_without_reuse = 147456 : i32
// CHECK:         sluice.lds_read
// CHECK-NEXT:    sluice.live_out
// CHECK-NEXT:    scf.for
// CHECK-NEXT:      sluice.wait_marks 1
// CHECK-NEXT:      sluice.live_out
// CHECK-NEXT:      sluice.barrier
// CHECK-NEXT:      sluice.live_in
// CHECK-NEXT:      sluice.async_dma
// CHECK-NEXT:      sluice.async_mark
// CHECK-NEXT:      sluice.lds_read
// CHECK-NEXT:      sluice.wait_marks 1
// CHECK-NEXT:      sluice.live_out
// CHECK-NEXT:      sluice.barrier
// CHECK-NEXT:      sluice.live_in
// CHECK:         sluice.wait_marks 0
// CHECK-COUNT-4: sluice.live_out
// CHECK-NEXT:    sluice.barrier
// CHECK-NEXT:    sluice.live_in
// CHECK-NEXT:    sluice.lds_write
gpu.func @attention(%k: !llvm.ptr<1>, %n: i32, %s: i64, %v: vector<4xf16>, %p: i1) kernel {
  %c2 = arith.constant 2 : i32
  %first = sluice.lds_alloc : !tile
  %k0 = sluice.lds_alloc : !tile
  %k1 = sluice.lds_alloc : !tile
  %v0 = sluice.lds_alloc : !tile
  %v1 = sluice.lds_alloc : !tile
  %o = sluice.lds_alloc : !output
  %c = sluice.async_dma %k[%n] limit %n stride %s into %first : !tile
  sluice.async_mark
  %d = sluice.async_dma %k[%n] limit %n stride %s into %k0 : !tile
  sluice.async_mark
  %e = sluice.async_dma %k[%n] limit %n stride %s into %v0 : !tile
  sluice.async_mark
  sluice.wait_marks 2
  sluice.barrier
  %x = sluice.lds_read %first[%n, %n] : !tile, vector<4xf16>
  scf.for %t = %n to %n step %c2 : i32 {
    sluice.wait_marks 1
    sluice.barrier
    %f = sluice.async_dma %k[%t] limit %n stride %s into %k1 : !tile
    sluice.async_mark
    %y = sluice.lds_read %k0[%n, %n] : !tile, vector<4xf16>
    sluice.wait_marks 1
    sluice.barrier
    %g = sluice.async_dma %k[%t] limit %n stride %s into %v1 : !tile
    sluice.async_mark
    %z = sluice.lds_read %v0[%n, %n] : !tile, vector<4xf16>
    scf.if %p {
      sluice.wait_marks 1
      sluice.barrier
      %h = sluice.async_dma %k[%t] limit %n stride %s into %k0 : !tile
      sluice.async_mark
      %yy = sluice.lds_read %k1[%n, %n] : !tile, vector<4xf16>
      sluice.wait_marks 1
      sluice.barrier
      %i = sluice.async_dma %k[%t] limit %n stride %s into %v0 : !tile
      sluice.async_mark
      %zz = sluice.lds_read %v1[%n, %n] : !tile, vector<4xf16>
    }
  }
  sluice.wait_marks 0
  sluice.lds_write %v, %o[%n, %n] : vector<4xf16>, !output
  %w = sluice.lds_read %o[%n, %n] : !output, vector<4xf16>
  gpu.return
}

// Tiles of several sizes: each starts at a multiple of 128 bytes. The small one takes bytes of the large one.
// REMARK: remark: sizes: 17296 bytes of LDS, 512 saved by reuse
// CHECK-LABEL: gpu.func @sizes
// CHECK-SAME:    arena_bytes = 17296
// CHECK:         sluice.lds_alloc {offset = 0 : i32} : <5x40xf16>
// CHECK:         sluice.lds_alloc {offset = 0 : i32} : <64x128xf16>
// CHECK:         sluice.lds_alloc {offset = 16384 : i32} : <5x40xf16>
// CHECK:         sluice.lds_alloc {offset = 16896 : i32} : <5x40xf16>
gpu.func @sizes(%v: vector<4xf16>, %n: i32) kernel {
  %a = sluice.lds_alloc : !small
  %b = sluice.lds_alloc : !tile
  %c = sluice.lds_alloc : !small
  %d = sluice.lds_alloc : !small
  sluice.lds_write %v, %c[%n, %n] : vector<4xf16>, !small
  sluice.lds_write %v, %d[%n, %n] : vector<4xf16>, !small
  sluice.lds_write %v, %a[%n, %n] : vector<4xf16>, !small
  %x = sluice.lds_read %a[%n, %n] : !small, vector<4xf16>
  sluice.lds_write %v, %b[%n, %n] : vector<4xf16>, !tile
  %y = sluice.lds_read %b[%n, %n] : !tile, vector<4xf16>
  %z = sluice.lds_read %c[%n, %n] : !small, vector<4xf16>
  %w = sluice.lds_read %d[%n, %n] : !small, vector<4xf16>
  gpu.return
}

// Without tiles the pass reports nothing; a function that is not a kernel has no LDS of its own.
// CHECK-LABEL: gpu.func @no_tiles() kernel {
// CHECK-LABEL: gpu.func @not_a_kernel({{.*}}) {
// CHECK:         sluice.lds_alloc :
// REMARK-NOT: remark
gpu.func @no_tiles() kernel {
  gpu.return
}
gpu.func @not_a_kernel(%v: vector<4xf16>, %n: i32) {
  %a = sluice.lds_alloc : !tile
  sluice.lds_write %v, %a[%n, %n] : vector<4xf16>, !tile
  gpu.return
}

}
