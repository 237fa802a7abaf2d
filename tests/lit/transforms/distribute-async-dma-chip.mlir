// RUN: sluice-opt %s --pass-pipeline='builtin.module(gpu.module(gpu.func(distribute-async-dma{chip=gfx950})))' | FileCheck %s

// Loads of 16 bytes, on chips that have them. With a column limit, which counts in 8 elements, a lane's load has at
// most 8 elements: 16 bytes of f16, 4 of i8.
!halves = !sluice.lds_tile<64x128xf16>
!bytes = !sluice.lds_tile<64x128xi8>
gpu.module @m {
  // CHECK-LABEL: gpu.func @all_columns
  // CHECK:         sluice.load_to_lds {{.*}} {bytes = 16 : i32}
  gpu.func @all_columns(%base: !llvm.ptr<1>, %n: i32, %stride: i64) kernel
      attributes {known_block_size = array<i32: 512, 1, 1>} {
    %bytes = sluice.lds_alloc : !bytes
    sluice.async_dma %base[%n] limit %n stride %stride into %bytes : !bytes
    gpu.return
  }
  // CHECK-LABEL: gpu.func @some_halves
  // CHECK:         sluice.load_to_lds {{.*}} {bytes = 16 : i32}
  gpu.func @some_halves(%base: !llvm.ptr<1>, %n: i32, %stride: i64) kernel
      attributes {known_block_size = array<i32: 512, 1, 1>} {
    %halves = sluice.lds_alloc : !halves
    sluice.async_dma %base[%n] limit %n columns %n stride %stride into %halves : !halves
    gpu.return
  }
  // CHECK-LABEL: gpu.func @some_bytes
  // CHECK:         sluice.load_to_lds {{.*}} {bytes = 4 : i32}
  gpu.func @some_bytes(%base: !llvm.ptr<1>, %n: i32, %stride: i64) kernel
      attributes {known_block_size = array<i32: 512, 1, 1>} {
    %bytes = sluice.lds_alloc : !bytes
    sluice.async_dma %base[%n] limit %n columns %n stride %stride into %bytes : !bytes
    gpu.return
  }
}
