// What a look-up of pages, the addresses of its rows and a copy may say about the rows and pages they concern.
// RUN: sluice-opt %s --split-input-file --verify-diagnostics

!tile = !sluice.lds_tile<16x128xf16>
func.func @page_rows(%p: !llvm.ptr<1>, %n: i32, %s: i64, %e: vector<2xi32>, %tile: !tile) {
  %zero = arith.constant 0 : i32
  // expected-error@+1 {{page_rows is 0; a page has at least one row}}
  %token = sluice.async_dma %p[%n] limit %n stride %s gather %e rows %zero stride %s into %tile : !tile
  return
}

// -----

!tile = !sluice.lds_tile<16x128xf16>
func.func @first_row(%p: !llvm.ptr<1>, %n: i32, %s: i64, %e: vector<2xi32>, %tile: !tile) {
  %negative = arith.constant -1 : i32
  // expected-error@+1 {{first_row is -1; a gather begins at row 0}}
  %token = sluice.async_dma %p[%negative] limit %n stride %s gather %e rows %n stride %s into %tile : !tile
  return
}

// -----

!tile = !sluice.lds_tile<16x128xf16>
func.func @hole_without_entries(%p: !llvm.ptr<1>, %n: i32, %s: i64, %e: vector<2xi32>, %tile: !tile) {
  // expected-error@+1 {{names pages but no entries of a table to gather with}}
  %token = sluice.async_dma %p[%n] limit %n hole %n to %n stride %s into %tile : !tile
  return
}

// -----

!tile = !sluice.lds_tile<16x128xf16>
func.func @magic_without_entries(%p: !llvm.ptr<1>, %n: i32, %s: i64, %e: vector<2xi32>, %tile: !tile) {
  // expected-error@+1 {{names pages but no entries of a table to gather with}}
  %token = sluice.async_dma %p[%n] limit %n stride %s magic %n shift %n into %tile : !tile
  return
}

// -----

!tile = !sluice.lds_tile<16x128xf16>
func.func @packs_without_entries(%p: !llvm.ptr<1>, %n: i32, %s: i64, %e: vector<2xi32>, %tile: !tile) {
  // expected-error@+1 {{names pages but no entries of a table to gather with}}
  %token = sluice.async_dma %p[%n] limit %n stride %s packs %n stride %s into %tile : !tile
  return
}

// -----

!tile = !sluice.lds_tile<16x128xf16>
func.func @rows_without_entries(%p: !llvm.ptr<1>, %n: i32, %s: i64, %e: vector<2xi32>, %tile: !tile) {
  // expected-error@+1 {{names pages but no entries of a table to gather with}}
  %token = "sluice.async_dma"(%p, %n, %n, %s, %tile, %n) {operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0>} : (!llvm.ptr<1>, i32, i32, i64, !tile, i32) -> !sluice.token
  return
}

// -----

!tile = !sluice.lds_tile<16x128xf16>
func.func @page_stride_without_entries(%p: !llvm.ptr<1>, %n: i32, %s: i64, %e: vector<2xi32>, %tile: !tile) {
  // expected-error@+1 {{names pages but no entries of a table to gather with}}
  %token = "sluice.async_dma"(%p, %n, %n, %s, %tile, %s) {operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0>} : (!llvm.ptr<1>, i32, i32, i64, !tile, i64) -> !sluice.token
  return
}

// -----

!tile = !sluice.lds_tile<16x128xf16>
func.func @pack_stride_without_entries(%p: !llvm.ptr<1>, %n: i32, %s: i64, %e: vector<2xi32>, %tile: !tile) {
  // expected-error@+1 {{names pages but no entries of a table to gather with}}
  %token = "sluice.async_dma"(%p, %n, %n, %s, %tile, %s) {operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1>} : (!llvm.ptr<1>, i32, i32, i64, !tile, i64) -> !sluice.token
  return
}

// -----

!tile = !sluice.lds_tile<16x128xf16>
func.func @no_page_stride(%p: !llvm.ptr<1>, %n: i32, %s: i64, %e: vector<2xi32>, %tile: !tile) {
  // expected-error@+1 {{gathers without page_rows or page_stride}}
  %token = "sluice.async_dma"(%p, %n, %n, %s, %tile, %e, %n) {operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0>} : (!llvm.ptr<1>, i32, i32, i64, !tile, vector<2xi32>, i32) -> !sluice.token
  return
}

// -----

!tile = !sluice.lds_tile<16x128xf16>
func.func @no_page_rows(%p: !llvm.ptr<1>, %n: i32, %s: i64, %e: vector<2xi32>, %tile: !tile) {
  // expected-error@+1 {{gathers without page_rows or page_stride}}
  %token = "sluice.async_dma"(%p, %n, %n, %s, %tile, %e, %s) {operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0>} : (!llvm.ptr<1>, i32, i32, i64, !tile, vector<2xi32>, i64) -> !sluice.token
  return
}

// -----

!tile = !sluice.lds_tile<16x128xf16>
func.func @magic_without_shift(%p: !llvm.ptr<1>, %n: i32, %s: i64, %e: vector<2xi32>, %tile: !tile) {
  // expected-error@+1 {{has one of page_magic and page_shift; both make a division}}
  %token = "sluice.async_dma"(%p, %n, %n, %s, %tile, %e, %n, %s, %n) {operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 0, 1, 1, 1, 1, 0, 0, 0, 0, 0>} : (!llvm.ptr<1>, i32, i32, i64, !tile, vector<2xi32>, i32, i64, i32) -> !sluice.token
  return
}

// -----

!tile = !sluice.lds_tile<16x128xf16>
func.func @shift_without_magic(%p: !llvm.ptr<1>, %n: i32, %s: i64, %e: vector<2xi32>, %tile: !tile) {
  // expected-error@+1 {{has one of page_magic and page_shift; both make a division}}
  %token = "sluice.async_dma"(%p, %n, %n, %s, %tile, %e, %n, %s, %n) {operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 0, 1, 1, 1, 0, 1, 0, 0, 0, 0>} : (!llvm.ptr<1>, i32, i32, i64, !tile, vector<2xi32>, i32, i64, i32) -> !sluice.token
  return
}

// -----

!tile = !sluice.lds_tile<16x128xf16>
func.func @begin_of_a_hole(%p: !llvm.ptr<1>, %n: i32, %s: i64, %e: vector<2xi32>, %tile: !tile) {
  // expected-error@+1 {{has one of hole_begin and hole_end; a hole has both}}
  %token = "sluice.async_dma"(%p, %n, %n, %s, %tile, %e, %n, %s, %n) {operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 0, 1, 1, 1, 0, 0, 1, 0, 0, 0>} : (!llvm.ptr<1>, i32, i32, i64, !tile, vector<2xi32>, i32, i64, i32) -> !sluice.token
  return
}

// -----

!tile = !sluice.lds_tile<16x128xf16>
func.func @end_of_a_hole(%p: !llvm.ptr<1>, %n: i32, %s: i64, %e: vector<2xi32>, %tile: !tile) {
  // expected-error@+1 {{has one of hole_begin and hole_end; a hole has both}}
  %token = "sluice.async_dma"(%p, %n, %n, %s, %tile, %e, %n, %s, %n) {operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 0, 1, 1, 1, 0, 0, 0, 1, 0, 0>} : (!llvm.ptr<1>, i32, i32, i64, !tile, vector<2xi32>, i32, i64, i32) -> !sluice.token
  return
}

// -----

!tile = !sluice.lds_tile<16x128xf16>
func.func @pack_without_stride(%p: !llvm.ptr<1>, %n: i32, %s: i64, %e: vector<2xi32>, %tile: !tile) {
  // expected-error@+1 {{has one of pack_log2 and pack_stride; packs have both}}
  %token = "sluice.async_dma"(%p, %n, %n, %s, %tile, %e, %n, %s, %n) {operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 0, 1, 1, 1, 0, 0, 0, 0, 1, 0>} : (!llvm.ptr<1>, i32, i32, i64, !tile, vector<2xi32>, i32, i64, i32) -> !sluice.token
  return
}

// -----

!tile = !sluice.lds_tile<16x128xf16>
func.func @close_rows_of_a_gather(%p: !llvm.ptr<1>, %n: i32, %s: i64, %e: vector<2xi32>, %tile: !tile) {
  // expected-error@+1 {{promises close rows of a gather, whose pages lie anywhere}}
  %token = sluice.async_dma %p[%n] limit %n stride %s gather %e rows %n stride %s into %tile {close_rows} : !tile
  return
}

// -----

!tile = !sluice.lds_tile<16x128xf16>
func.func @columns(%p: !llvm.ptr<1>, %n: i32, %s: i64, %e: vector<2xi32>, %tile: !tile) {
  %limit = arith.constant 12 : i32
  // expected-error@+1 {{column_limit is 12; it is a multiple of 8 and not negative}}
  %token = sluice.async_dma %p[%n] limit %n columns %limit stride %s into %tile : !tile
  return
}

// -----

!tile = !sluice.lds_tile<16x128xf16>
func.func @negative_columns(%p: !llvm.ptr<1>, %n: i32, %s: i64, %e: vector<2xi32>, %tile: !tile) {
  %limit = arith.constant -8 : i32
  // expected-error@+1 {{column_limit is -8; it is a multiple of 8 and not negative}}
  %token = sluice.async_dma %p[%n] limit %n columns %limit stride %s into %tile : !tile
  return
}

// -----

!tile = !sluice.lds_tile<16x128xf16>
func.func @entries(%p: !llvm.ptr<1>, %n: i32, %s: i64, %e: vector<2xi64>, %tile: !tile) {
  // expected-error@+1 {{operand #5 must be two 32-bit halves of a page table's entry, the lower one first, but got 'vector<2xi64>'}}
  %token = "sluice.async_dma"(%p, %n, %n, %s, %tile, %e, %n, %s) {operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 0, 1, 1, 1, 0, 0, 0, 0, 0, 0>} : (!llvm.ptr<1>, i32, i32, i64, !tile, vector<2xi64>, i32, i64) -> !sluice.token
  return
}

// -----

func.func @page_rows_of_a_lookup(%p: !llvm.ptr<1>, %n: i32) {
  %zero = arith.constant 0 : i32
  // expected-error@+1 {{'sluice.page_lookup' op page_rows is 0; a page has at least one row}}
  %e = sluice.page_lookup %p[%n] limit %n rows %zero
  return
}

// -----

func.func @first_row_of_a_lookup(%p: !llvm.ptr<1>, %n: i32) {
  %negative = arith.constant -1 : i32
  // expected-error@+1 {{'sluice.page_lookup' op first_row is -1; a gather begins at row 0}}
  %e = sluice.page_lookup %p[%negative] limit %n rows %n
  return
}

// -----

func.func @half_a_division_of_a_lookup(%p: !llvm.ptr<1>, %n: i32) {
  // expected-error@+1 {{'sluice.page_lookup' op has one of page_magic and page_shift; both make a division}}
  %e = "sluice.page_lookup"(%p, %n, %n, %n, %n) {operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 0, 0, 0, 0>} : (!llvm.ptr<1>, i32, i32, i32, i32) -> vector<2xi32>
  return
}

// -----

func.func @half_a_hole_of_a_lookup(%p: !llvm.ptr<1>, %n: i32) {
  // expected-error@+1 {{'sluice.page_lookup' op has one of hole_begin and hole_end; a hole has both}}
  %e = "sluice.page_lookup"(%p, %n, %n, %n, %n) {operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0, 0, 1, 0>} : (!llvm.ptr<1>, i32, i32, i32, i32) -> vector<2xi32>
  return
}

// -----

func.func @page_rows_of_addresses(%p: !llvm.ptr<1>, %n: i32, %s: i64, %e: vector<2xi32>) {
  %zero = arith.constant 0 : i32
  // expected-error@+1 {{'sluice.row_addresses' op page_rows is 0; a page has at least one row}}
  %a = sluice.row_addresses %p[%n] limit %n stride %s gather %e rows %zero stride %s {element_bytes = 2 : i32, row_bytes = 256 : i32}
  return
}

// -----

func.func @first_row_of_addresses(%p: !llvm.ptr<1>, %n: i32, %s: i64, %e: vector<2xi32>) {
  %negative = arith.constant -1 : i32
  // expected-error@+1 {{'sluice.row_addresses' op first_row is -1; a gather begins at row 0}}
  %a = sluice.row_addresses %p[%negative] limit %n stride %s gather %e rows %n stride %s {element_bytes = 2 : i32, row_bytes = 256 : i32}
  return
}

// -----

func.func @half_a_division_of_addresses(%p: !llvm.ptr<1>, %n: i32, %s: i64, %e: vector<2xi32>) {
  // expected-error@+1 {{'sluice.row_addresses' op has one of page_magic and page_shift; both make a division}}
  %a = "sluice.row_addresses"(%p, %n, %n, %s, %e, %n, %s, %n) {element_bytes = 2 : i32, row_bytes = 256 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1, 1, 0, 1, 0, 0>} : (!llvm.ptr<1>, i32, i32, i64, vector<2xi32>, i32, i64, i32) -> !llvm.ptr<1>
  return
}

// -----

func.func @half_a_hole_of_addresses(%p: !llvm.ptr<1>, %n: i32, %s: i64, %e: vector<2xi32>) {
  // expected-error@+1 {{'sluice.row_addresses' op has one of hole_begin and hole_end; a hole has both}}
  %a = "sluice.row_addresses"(%p, %n, %n, %s, %e, %n, %s, %n) {element_bytes = 2 : i32, row_bytes = 256 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 1>} : (!llvm.ptr<1>, i32, i32, i64, vector<2xi32>, i32, i64, i32) -> !llvm.ptr<1>
  return
}
