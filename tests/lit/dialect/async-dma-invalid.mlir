// What a copy may say about the rows and pages it copies from.
// RUN: sluice-opt %s --split-input-file --verify-diagnostics

!tile = !sluice.lds_tile<16x128xf16>
func.func @page_rows(%p: !llvm.ptr<1>, %n: i32, %s: i64, %tile: !tile) {
  %zero = arith.constant 0 : i32
  // expected-error@+1 {{page_rows is 0; a page has at least one row}}
  %token = sluice.async_dma %p[%n] limit %n stride %s gather %p of i32 rows %zero stride %s into %tile : !tile
  return
}

// -----

!tile = !sluice.lds_tile<16x128xf16>
func.func @page_rows_and_divisor(%p: !llvm.ptr<1>, %n: i32, %s: i64, %tile: !tile) {
  %three = arith.constant 3 : i32
  // expected-error@+1 {{page_rows is 3, which page_divisor 2 does not divide}}
  %token = sluice.async_dma %p[%n] limit %n stride %s gather %p of i32 rows %three stride %s into %tile {page_divisor = 2 : i32} : !tile
  return
}

// -----

!tile = !sluice.lds_tile<16x128xf16>
func.func @first_row_and_divisor(%p: !llvm.ptr<1>, %n: i32, %s: i64, %tile: !tile) {
  %three = arith.constant 3 : i32
  // expected-error@+1 {{first_row is 3, which page_divisor 2 does not divide}}
  %token = sluice.async_dma %p[%three] limit %n stride %s gather %p of i32 rows %n stride %s into %tile {page_divisor = 2 : i32} : !tile
  return
}

// -----

!tile = !sluice.lds_tile<16x128xf16>
func.func @first_row(%p: !llvm.ptr<1>, %n: i32, %s: i64, %tile: !tile) {
  %negative = arith.constant -1 : i32
  // expected-error@+1 {{first_row is -1; a gather begins at row 0}}
  %token = sluice.async_dma %p[%negative] limit %n stride %s gather %p of i32 rows %n stride %s into %tile : !tile
  return
}

// -----

!tile = !sluice.lds_tile<16x128xf16>
func.func @divisor(%p: !llvm.ptr<1>, %n: i32, %s: i64, %tile: !tile) {
  // expected-error@+1 {{page_divisor is 6, not a power of two}}
  %token = sluice.async_dma %p[%n] limit %n stride %s gather %p of i32 rows %n stride %s into %tile {page_divisor = 6 : i32} : !tile
  return
}

// -----

!tile = !sluice.lds_tile<16x128xf16>
func.func @index(%p: !llvm.ptr<1>, %n: i32, %s: i64, %tile: !tile) {
  // expected-error@+1 {{page_index is 'i16'; tables hold i32 or i64}}
  %token = sluice.async_dma %p[%n] limit %n stride %s gather %p of i16 rows %n stride %s into %tile : !tile
  return
}

// -----

!tile = !sluice.lds_tile<16x128xf16>
func.func @no_table(%p: !llvm.ptr<1>, %n: i32, %s: i64, %tile: !tile) {
  // expected-error@+1 {{names pages but no table to gather through}}
  %token = sluice.async_dma %p[%n] limit %n stride %s into %tile {page_divisor = 2 : i32} : !tile
  return
}

// -----

!tile = !sluice.lds_tile<16x128xf16>
func.func @half_a_gather(%p: !llvm.ptr<1>, %n: i32, %s: i64, %tile: !tile) {
  // expected-error@+1 {{gathers without page_rows, page_stride or page_index}}
  %token = "sluice.async_dma"(%p, %n, %n, %s, %tile, %p) {page_divisor = 1 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0>} : (!llvm.ptr<1>, i32, i32, i64, !tile, !llvm.ptr<1>) -> !sluice.token
  return
}

// -----

// expected-error@+1 {{swizzle rows per phase are 3, not a power of two}}
func.func private @rows_per_phase(!sluice.lds_tile<64x128xf16, xor<8, 8, 3>>)

// -----

!tile = !sluice.lds_tile<16x128xf16>
func.func @close_rows_of_a_gather(%p: !llvm.ptr<1>, %n: i32, %s: i64, %tile: !tile) {
  // expected-error@+1 {{promises close rows of a gather, whose pages lie anywhere}}
  %token = sluice.async_dma %p[%n] limit %n stride %s gather %p of i32 rows %n stride %s into %tile {close_rows} : !tile
  return
}

// -----

!tile = !sluice.lds_tile<16x128xf16>
func.func @columns(%p: !llvm.ptr<1>, %n: i32, %s: i64, %tile: !tile) {
  %limit = arith.constant 12 : i32
  // expected-error@+1 {{column_limit is 12; it is a multiple of 8 and not negative}}
  %token = sluice.async_dma %p[%n] limit %n columns %limit stride %s into %tile : !tile
  return
}

// -----

!tile = !sluice.lds_tile<16x128xf16>
func.func @magic_without_table(%p: !llvm.ptr<1>, %n: i32, %s: i64, %tile: !tile) {
  // expected-error@+1 {{names pages but no table to gather through}}
  %token = sluice.async_dma %p[%n] limit %n stride %s magic %n shift %n into %tile : !tile
  return
}

// -----

!tile = !sluice.lds_tile<16x128xf16>
func.func @magic_without_shift(%p: !llvm.ptr<1>, %n: i32, %s: i64, %tile: !tile) {
  // expected-error@+1 {{has one of page_magic and page_shift; both make a division}}
  %token = "sluice.async_dma"(%p, %n, %n, %s, %tile, %p, %n, %s, %n) {page_index = i32, operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 0, 1, 1, 1, 1, 0, 0, 0, 0>} : (!llvm.ptr<1>, i32, i32, i64, !tile, !llvm.ptr<1>, i32, i64, i32) -> !sluice.token
  return
}

// -----

!tile = !sluice.lds_tile<16x128xf16>
func.func @negative_columns(%p: !llvm.ptr<1>, %n: i32, %s: i64, %tile: !tile) {
  %limit = arith.constant -8 : i32
  // expected-error@+1 {{column_limit is -8; it is a multiple of 8 and not negative}}
  %token = sluice.async_dma %p[%n] limit %n columns %limit stride %s into %tile : !tile
  return
}

// -----

!tile = !sluice.lds_tile<16x128xf16>
func.func @pack_without_stride(%p: !llvm.ptr<1>, %n: i32, %s: i64, %tile: !tile) {
  // expected-error@+1 {{has one of pack_log2 and pack_stride; packs have both}}
  %token = "sluice.async_dma"(%p, %n, %n, %s, %tile, %p, %n, %s, %n) {page_index = i32, operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 0, 1, 1, 1, 0, 0, 0, 1, 0>} : (!llvm.ptr<1>, i32, i32, i64, !tile, !llvm.ptr<1>, i32, i64, i32) -> !sluice.token
  return
}

// -----

!tile = !sluice.lds_tile<16x128xf16>
func.func @wide_pages_of_i64(%p: !llvm.ptr<1>, %n: i32, %s: i64, %tile: !tile, %wide: i1) {
  // expected-error@+1 {{page_index is 'i64'; with wide_pages it is i32}}
  %token = sluice.async_dma %p[%n] limit %n stride %s gather %p of i64 rows %n stride %s wide %wide into %tile : !tile
  return
}

// -----

!tile = !sluice.lds_tile<16x128xf16>
func.func @packs_of_contiguous_rows(%p: !llvm.ptr<1>, %n: i32, %s: i64, %tile: !tile) {
  // expected-error@+1 {{names pages but no table to gather through}}
  %token = sluice.async_dma %p[%n] limit %n stride %s packs %n stride %s into %tile : !tile
  return
}
