// The rules for pages of rows, their look-ups, the addresses of their rows, and copies.
// RUN: sluice-opt %s --split-input-file --verify-diagnostics

func.func @page_rows() {
  %zero = arith.constant 0 : i32
  // expected-error@+1 {{'sluice.pages' op rows is 0; it must be at least 1}}
  %pages = sluice.pages of %zero
  return
}

// -----

func.func @magic_without_shift(%n: i32) {
  // expected-error@+1 {{has one of magic and shift; a division needs both}}
  %pages = "sluice.pages"(%n, %n) {operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0>} : (i32, i32) -> !sluice.pages
  return
}

// -----

func.func @shift_without_magic(%n: i32) {
  // expected-error@+1 {{has one of magic and shift; a division needs both}}
  %pages = "sluice.pages"(%n, %n) {operandSegmentSizes = array<i32: 1, 0, 1, 0, 0, 0, 0>} : (i32, i32) -> !sluice.pages
  return
}

// -----

func.func @begin_of_a_hole(%n: i32) {
  // expected-error@+1 {{has one of hole_begin and hole_end; a hole needs both}}
  %pages = "sluice.pages"(%n, %n) {operandSegmentSizes = array<i32: 1, 0, 0, 1, 0, 0, 0>} : (i32, i32) -> !sluice.pages
  return
}

// -----

func.func @end_of_a_hole(%n: i32) {
  // expected-error@+1 {{has one of hole_begin and hole_end; a hole needs both}}
  %pages = "sluice.pages"(%n, %n) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 1, 0, 0>} : (i32, i32) -> !sluice.pages
  return
}

// -----

!tile = !sluice.lds_tile<16x128xf16>
func.func @first_row(%p: !llvm.ptr<1>, %n: i32, %s: i64, %e: vector<2xi32>, %tile: !tile) {
  %negative = arith.constant -1 : i32
  %pages = sluice.pages of %n
  // expected-error@+1 {{'sluice.async_dma' op first_row is -1; a gather begins at row 0}}
  %token = sluice.async_dma %p[%negative] limit %n stride %s gather %e in %pages stride %s into %tile : !tile
  return
}

// -----

func.func @first_row_of_a_lookup(%p: !llvm.ptr<1>, %n: i32) {
  %negative = arith.constant -1 : i32
  %pages = sluice.pages of %n
  // expected-error@+1 {{'sluice.page_lookup' op first_row is -1; a gather begins at row 0}}
  %e = sluice.page_lookup %p[%negative] limit %n in %pages
  return
}

// -----

func.func @first_row_of_addresses(%p: !llvm.ptr<1>, %n: i32, %s: i64, %e: vector<2xi32>) {
  %negative = arith.constant -1 : i32
  %pages = sluice.pages of %n
  // expected-error@+1 {{'sluice.row_addresses' op first_row is -1; a gather begins at row 0}}
  %a = sluice.row_addresses %p[%negative] limit %n stride %s gather %e in %pages stride %s {element_bytes = 2 : i32, row_bytes = 256 : i32}
  return
}

// -----

!tile = !sluice.lds_tile<16x128xf16>
func.func @pages_from_elsewhere(%p: !llvm.ptr<1>, %n: i32, %s: i64, %e: vector<2xi32>, %pages: !sluice.pages, %tile: !tile) {
  // expected-error@+1 {{'sluice.async_dma' op has pages that are not the result of a sluice.pages}}
  %token = sluice.async_dma %p[%n] limit %n stride %s gather %e in %pages stride %s into %tile : !tile
  return
}

// -----

func.func @pages_of_a_lookup_from_elsewhere(%p: !llvm.ptr<1>, %n: i32, %pages: !sluice.pages) {
  // expected-error@+1 {{'sluice.page_lookup' op has pages that are not the result of a sluice.pages}}
  %e = sluice.page_lookup %p[%n] limit %n in %pages
  return
}

// -----

func.func @pages_of_addresses_from_elsewhere(%p: !llvm.ptr<1>, %n: i32, %s: i64, %e: vector<2xi32>, %pages: !sluice.pages) {
  // expected-error@+1 {{'sluice.row_addresses' op has pages that are not the result of a sluice.pages}}
  %a = sluice.row_addresses %p[%n] limit %n stride %s gather %e in %pages stride %s {element_bytes = 2 : i32, row_bytes = 256 : i32}
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
func.func @pages_without_entries(%p: !llvm.ptr<1>, %n: i32, %s: i64, %e: vector<2xi32>, %tile: !tile) {
  %pages = sluice.pages of %n
  // expected-error@+1 {{names pages but no entries of a table to gather with}}
  %token = "sluice.async_dma"(%p, %n, %n, %s, %tile, %pages) {operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 0, 0, 1, 0, 0, 0>} : (!llvm.ptr<1>, i32, i32, i64, !tile, !sluice.pages) -> !sluice.token
  return
}

// -----

!tile = !sluice.lds_tile<16x128xf16>
func.func @page_stride_without_entries(%p: !llvm.ptr<1>, %n: i32, %s: i64, %e: vector<2xi32>, %tile: !tile) {
  // expected-error@+1 {{names pages but no entries of a table to gather with}}
  %token = "sluice.async_dma"(%p, %n, %n, %s, %tile, %s) {operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0>} : (!llvm.ptr<1>, i32, i32, i64, !tile, i64) -> !sluice.token
  return
}

// -----

!tile = !sluice.lds_tile<16x128xf16>
func.func @pack_stride_without_entries(%p: !llvm.ptr<1>, %n: i32, %s: i64, %e: vector<2xi32>, %tile: !tile) {
  // expected-error@+1 {{names pages but no entries of a table to gather with}}
  %token = "sluice.async_dma"(%p, %n, %n, %s, %tile, %s) {operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 1>} : (!llvm.ptr<1>, i32, i32, i64, !tile, i64) -> !sluice.token
  return
}

// -----

!tile = !sluice.lds_tile<16x128xf16>
func.func @no_page_stride(%p: !llvm.ptr<1>, %n: i32, %s: i64, %e: vector<2xi32>, %tile: !tile) {
  %pages = sluice.pages of %n
  // expected-error@+1 {{gathers without pages or page_stride}}
  %token = "sluice.async_dma"(%p, %n, %n, %s, %tile, %e, %pages) {operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 0, 1, 1, 0, 0, 0>} : (!llvm.ptr<1>, i32, i32, i64, !tile, vector<2xi32>, !sluice.pages) -> !sluice.token
  return
}

// -----

!tile = !sluice.lds_tile<16x128xf16>
func.func @no_pages(%p: !llvm.ptr<1>, %n: i32, %s: i64, %e: vector<2xi32>, %tile: !tile) {
  // expected-error@+1 {{gathers without pages or page_stride}}
  %token = "sluice.async_dma"(%p, %n, %n, %s, %tile, %e, %s) {operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 0, 1, 0, 1, 0, 0>} : (!llvm.ptr<1>, i32, i32, i64, !tile, vector<2xi32>, i64) -> !sluice.token
  return
}

// -----

!tile = !sluice.lds_tile<16x128xf16>
func.func @pack_without_stride(%p: !llvm.ptr<1>, %n: i32, %s: i64, %e: vector<2xi32>, %tile: !tile) {
  %pages = sluice.pages of %n
  // expected-error@+1 {{has one of pack_log2 and pack_stride; packs need both}}
  %token = "sluice.async_dma"(%p, %n, %n, %s, %tile, %e, %pages, %s, %n) {operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 0, 1, 1, 1, 1, 0>} : (!llvm.ptr<1>, i32, i32, i64, !tile, vector<2xi32>, !sluice.pages, i64, i32) -> !sluice.token
  return
}

// -----

!tile = !sluice.lds_tile<16x128xf16>
func.func @close_rows_of_a_gather(%p: !llvm.ptr<1>, %n: i32, %s: i64, %e: vector<2xi32>, %tile: !tile) {
  %pages = sluice.pages of %n
  // expected-error@+1 {{promises close rows of a gather, whose pages may be anywhere}}
  %token = sluice.async_dma %p[%n] limit %n stride %s gather %e in %pages stride %s into %tile {close_rows} : !tile
  return
}

// -----

!tile = !sluice.lds_tile<16x128xf16>
func.func @columns(%p: !llvm.ptr<1>, %n: i32, %s: i64, %e: vector<2xi32>, %tile: !tile) {
  %limit = arith.constant 12 : i32
  // expected-error@+1 {{column_limit is 12; it must be a multiple of 8 and not negative}}
  %token = sluice.async_dma %p[%n] limit %n columns %limit stride %s into %tile : !tile
  return
}

// -----

!tile = !sluice.lds_tile<16x128xf16>
func.func @negative_columns(%p: !llvm.ptr<1>, %n: i32, %s: i64, %e: vector<2xi32>, %tile: !tile) {
  %limit = arith.constant -8 : i32
  // expected-error@+1 {{column_limit is -8; it must be a multiple of 8 and not negative}}
  %token = sluice.async_dma %p[%n] limit %n columns %limit stride %s into %tile : !tile
  return
}

// -----

!tile = !sluice.lds_tile<16x128xf16>
func.func @entries(%p: !llvm.ptr<1>, %n: i32, %s: i64, %e: vector<2xi64>, %tile: !tile) {
  %pages = sluice.pages of %n
  // expected-error@+1 {{operand #5 must be two 32-bit halves of a page table's entry, the lower one first, but got 'vector<2xi64>'}}
  %token = "sluice.async_dma"(%p, %n, %n, %s, %tile, %e, %pages, %s) {operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 0, 1, 1, 1, 0, 0>} : (!llvm.ptr<1>, i32, i32, i64, !tile, vector<2xi64>, !sluice.pages, i64) -> !sluice.token
  return
}

// -----

!tile = !sluice.lds_tile<16x128xf16>
func.func @source(%p: !llvm.ptr<1>, %n: i32, %s: i64, %tile: !tile) {
  // expected-error@+1 {{'sluice.async_dma' op goes through registers from 'f8E4M3B11FNUZ' into a tile of 'f16'; elements of 1 or 2 bytes do into a tile of their own type, and FP8 of a cache and i8 into one of f16 or bf16}}
  %token = sluice.async_dma %p[%n] limit %n stride %s into %tile from f8E4M3B11FNUZ : !tile
  return
}

// -----

!tile = !sluice.lds_tile<16x128xf32>
func.func @converted(%p: !llvm.ptr<1>, %n: i32, %s: i64, %tile: !tile) {
  // expected-error@+1 {{'sluice.async_dma' op goes through registers from 'f8E4M3FNUZ' into a tile of 'f32'}}
  %token = sluice.async_dma %p[%n] limit %n stride %s into %tile from f8E4M3FNUZ : !tile
  return
}

// -----

!tile = !sluice.lds_tile<16x128xbf16>
func.func @another_type(%p: !llvm.ptr<1>, %n: i32, %s: i64, %tile: !tile) {
  // expected-error@+1 {{'sluice.async_dma' op goes through registers from 'f16' into a tile of 'bf16'; elements of 1 or 2 bytes do into a tile of their own type, and FP8 of a cache and i8 into one of f16 or bf16}}
  %token = sluice.async_dma %p[%n] limit %n stride %s into %tile from f16 : !tile
  return
}

// -----

!tile = !sluice.lds_tile<16x128xf32>
func.func @wide_elements(%p: !llvm.ptr<1>, %n: i32, %s: i64, %tile: !tile) {
  // expected-error@+1 {{'sluice.async_dma' op goes through registers from 'f32' into a tile of 'f32'; elements of 1 or 2 bytes do}}
  %token = sluice.async_dma %p[%n] limit %n stride %s into %tile from f32 : !tile
  return
}

// -----

func.func @fetched_source(%p: !llvm.ptr<1>, %n: i32, %s: i64) {
  // expected-error@+1 {{'sluice.fetch_rows' op goes through registers from 'bf16' into a tile of 'f16'}}
  %rows = sluice.fetch_rows %p[%n] limit %n stride %s for !sluice.lds_tile<16x128xf16> from bf16 : vector<4xi32>
  return
}

// -----

func.func @half_a_load(%p: !llvm.ptr<1>, %n: i32, %s: i64) {
  // expected-error@+1 {{'sluice.fetch_rows' op has rows of type 'vector<2xi32>'; they must be dwords, 4 for each load of a lane}}
  %rows = sluice.fetch_rows %p[%n] limit %n stride %s for !sluice.lds_tile<16x128xf16> from f16 : vector<2xi32>
  return
}

// -----

func.func @fetched_rows(%p: !llvm.ptr<1>, %n: i32, %s: i64) {
  // expected-error@+1 {{'sluice.fetch_rows' op has rows of type 'vector<8xi8>'; they must be dwords, 2 for each load of a lane}}
  %rows = sluice.fetch_rows %p[%n] limit %n stride %s for !sluice.lds_tile<16x128xf16> from f8E4M3FNUZ : vector<8xi8>
  return
}

// -----

func.func @fetched_columns(%p: !llvm.ptr<1>, %n: i32, %s: i64) {
  %limit = arith.constant 12 : i32
  // expected-error@+1 {{'sluice.fetch_rows' op column_limit is 12; it must be a multiple of 8 and not negative}}
  %rows = sluice.fetch_rows %p[%n] limit %n columns %limit stride %s for !sluice.lds_tile<16x128xf16> from f8E4M3FNUZ : vector<2xi32>
  return
}

// -----

func.func @landed_rows(%rows: vector<3xi32>, %tile: !sluice.lds_tile<16x128xf16>) {
  // expected-error@+1 {{'sluice.land_rows' op has rows of type 'vector<3xi32>'; they must be dwords, 2 for each load of a lane}}
  sluice.land_rows %rows into %tile from f8E4M3FNUZ : vector<3xi32>, !sluice.lds_tile<16x128xf16>
  return
}

// -----

func.func @landed_elements(%rows: vector<2xi32>, %tile: !sluice.lds_tile<16x128xi8>) {
  // expected-error@+1 {{'sluice.land_rows' op goes through registers from 'f8E4M3FNUZ' into a tile of 'i8'}}
  sluice.land_rows %rows into %tile from f8E4M3FNUZ : vector<2xi32>, !sluice.lds_tile<16x128xi8>
  return
}

// -----

// expected-error@+1 {{a tile by columns has elements of one or two bytes, no swizzle, a multiple of 32 or 16 rows, and a power of two of columns, 64 or more}}
func.func @columns_of_four_bytes(%tile: !sluice.lds_tile<32x64xf32, by_columns>) {
  return
}

// -----

// expected-error@+1 {{a tile by columns has elements of one or two bytes}}
func.func @too_few_rows(%tile: !sluice.lds_tile<16x64xi8, by_columns>) {
  return
}

// -----

// expected-error@+1 {{a tile by columns has elements of one or two bytes}}
func.func @too_few_rows_of_two_bytes(%tile: !sluice.lds_tile<8x64xf16, by_columns>) {
  return
}

// -----

// expected-error@+1 {{a tile by columns has elements of one or two bytes}}
func.func @too_few_columns(%tile: !sluice.lds_tile<32x32xi8, by_columns>) {
  return
}

// -----

!tile = !sluice.lds_tile<32x128xi8, by_columns>
func.func @direct_by_columns(%p: !llvm.ptr<1>, %n: i32, %s: i64, %tile: !tile) {
  // expected-error@+1 {{'sluice.async_dma' op fills a tile by columns, which copies of close rows or rows in pages do, through registers}}
  %token = sluice.async_dma %p[%n] limit %n stride %s into %tile {close_rows} : !tile
  return
}

// -----

func.func @far_rows_by_columns(%p: !llvm.ptr<1>, %n: i32, %s: i64) {
  // expected-error@+1 {{'sluice.fetch_rows' op fills a tile by columns, which copies of close rows or rows in pages do, through registers}}
  %rows = sluice.fetch_rows %p[%n] limit %n stride %s for !sluice.lds_tile<32x128xi8, by_columns> from i8 : vector<4xi32>
  return
}

// -----

func.func @read_by_columns(%tile: !sluice.lds_tile<32x128xi8, by_columns>, %n: i32) {
  // expected-error@+1 {{'sluice.lds_read' op reads 8 elements of a tile by columns; the number must be 1, 4 or 16}}
  %value = sluice.lds_read %tile[%n, %n] : !sluice.lds_tile<32x128xi8, by_columns>, vector<8xi8>
  return
}

// -----

func.func @read_two_bytes_by_columns(%tile: !sluice.lds_tile<16x128xf16, by_columns>, %n: i32) {
  // expected-error@+1 {{'sluice.lds_read' op reads 16 elements of a tile by columns; the number must be 1, 4 or 8}}
  %value = sluice.lds_read %tile[%n, %n] : !sluice.lds_tile<16x128xf16, by_columns>, vector<16xf16>
  return
}

// -----

func.func @found_rows_of_anything(%entries: vector<2xi32>, %pages: !sluice.pages, %all: i1) {
  // expected-error@+1 {{has pages that are not the result of a sluice.pages}}
  %found = sluice.found_rows %entries in %pages or %all
  return
}

// -----

func.func @found_rows_without_a_last_page(%entries: vector<2xi32>, %n: i32, %all: i1) {
  %pages = sluice.pages of %n
  // expected-error@+1 {{has pages without a last one: every entry is a page}}
  %found = sluice.found_rows %entries in %pages or %all
  return
}
