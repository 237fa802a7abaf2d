// RUN: sluice-opt %s --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(gpu.module(gpu.func(distribute-async-dma)))'

!tile = !sluice.lds_tile<12x128xf16>
gpu.module @m {
  gpu.func @rows_do_not_divide(%base: !llvm.ptr<1>, %n: i32, %stride: i64) kernel
      attributes {known_block_size = array<i32: 512, 1, 1>} {
    %tile = sluice.lds_alloc : !tile
    // expected-error@+1 {{cannot distribute '!sluice.lds_tile<12x128xf16>' over 8 waves: 4 bytes: 8 waves do not divide 12x1 instructions; 2 bytes: a lane fills 4 bytes of LDS, so rows would have gaps; 1 bytes: a lane fills 4 bytes of LDS, so rows would have gaps}}
    %token = sluice.async_dma %base[%n] limit %n stride %stride into %tile : !tile
    gpu.return
  }
}

// -----

!tile = !sluice.lds_tile<16x128xf16>
gpu.module @m {
  // expected-error@+1 {{known_block_size must be a multiple of the wave size}}
  gpu.func @no_block_size(%base: !llvm.ptr<1>, %n: i32, %stride: i64) kernel {
    %tile = sluice.lds_alloc : !tile
    %token = sluice.async_dma %base[%n] limit %n stride %stride into %tile : !tile
    gpu.return
  }
}
