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

// -----

!tile = !sluice.lds_tile<128x64xf16>
gpu.module @m {
  gpu.func @more_rows_than_lanes(%base: !llvm.ptr<1>, %n: i32, %stride: i64, %entries: vector<2xi32>) kernel
      attributes {known_block_size = array<i32: 512, 1, 1>} {
    %pages = sluice.pages of %n
    %tile = sluice.lds_alloc : !tile
    // expected-error@+1 {{cannot gather '!sluice.lds_tile<128x64xf16>': a wave finds 64 rows at a time}}
    %token = sluice.async_dma %base[%n] limit %n stride %stride gather %entries in %pages stride %stride into %tile : !tile
    gpu.return
  }
}

// -----

// Contiguous rows may be more than 64; a gather may have 64.
!tile = !sluice.lds_tile<128x64xf16>
!wave = !sluice.lds_tile<64x64xf16>
gpu.module @m {
  gpu.func @as_many_rows(%base: !llvm.ptr<1>, %n: i32, %stride: i64, %entries: vector<2xi32>) kernel
      attributes {known_block_size = array<i32: 512, 1, 1>} {
    %pages = sluice.pages of %n
    %tile = sluice.lds_alloc : !tile
    %wave = sluice.lds_alloc : !wave
    %token = sluice.async_dma %base[%n] limit %n stride %stride into %tile : !tile
    %other = sluice.async_dma %base[%n] limit %n stride %stride gather %entries in %pages stride %stride into %wave : !wave
    gpu.return
  }
}

// -----

// Through registers, each lane copies 8 columns at a time.
!tile = !sluice.lds_tile<16x64xf16>
gpu.module @m {
  gpu.func @too_few_to_fetch(%base: !llvm.ptr<1>, %n: i32, %stride: i64) kernel
      attributes {known_block_size = array<i32: 256, 1, 1>} {
    %tile = sluice.lds_alloc : !tile
    // expected-error@+1 {{cannot distribute '!sluice.lds_tile<16x64xf16>' over 4 waves: 4 waves do not divide 2x1 instructions}}
    %token = sluice.async_dma %base[%n] limit %n stride %stride into %tile from f8E4M3FNUZ : !tile
    gpu.return
  }
}

// -----

!tile = !sluice.lds_tile<128x64xf16>
gpu.module @m {
  gpu.func @more_rows_to_fetch(%base: !llvm.ptr<1>, %n: i32, %stride: i64, %entries: vector<2xi32>) kernel
      attributes {known_block_size = array<i32: 512, 1, 1>} {
    %pages = sluice.pages of %n
    %tile = sluice.lds_alloc : !tile
    // expected-error@+1 {{cannot gather '!sluice.lds_tile<128x64xf16>': a wave finds 64 rows at a time}}
    %token = sluice.async_dma %base[%n] limit %n stride %stride gather %entries in %pages stride %stride into %tile from f8E4M3FNUZ : !tile
    gpu.return
  }
}

// -----

!tile = !sluice.lds_tile<32x128xf16>
gpu.module @m {
  gpu.func @rows_of_others(%rows: vector<2xi32>) kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
    %tile = sluice.lds_alloc : !tile
    // expected-error@+1 {{has rows of type 'vector<2xi32>'; of '!sluice.lds_tile<32x128xf16>', each lane of 4 waves has 'vector<4xi32>'}}
    sluice.land_rows %rows into %tile from f8E4M3FNUZ : vector<2xi32>, !tile
    gpu.return
  }
}

// -----

// Each load of 16-bit elements brings four dwords.
!tile = !sluice.lds_tile<32x128xf16>
gpu.module @m {
  gpu.func @bytes_of_others(%rows: vector<4xi32>) kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
    %tile = sluice.lds_alloc : !tile
    // expected-error@+1 {{has rows of type 'vector<4xi32>'; of '!sluice.lds_tile<32x128xf16>', each lane of 4 waves has 'vector<8xi32>'}}
    sluice.land_rows %rows into %tile from f16 : vector<4xi32>, !tile
    gpu.return
  }
}
