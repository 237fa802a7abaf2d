//===- PagedRows.h - where the rows of a page table are, a row per lane -----------------------*- C++ -*-===//
//
// The lanes of a wave find the next rows together, each one of them:
//
//   page    = (first_row + lane) / page_rows             a multiplication, if the host has prepared it
//   entry   = table[page]                                 one load for all lanes
//   address = base + entry * page_stride + (row in page) * row_stride
//
// What then needs the row takes it from its lane. So the cost of a tile of up to a wave of rows is the same
// for pages of any size, and K and V share the entries.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "transforms/CopyBuilder.h"

namespace sluice {

class PagedRows {
public:
  using Value = mlir::Value;

  PagedRows(CopyBuilder &builder, PageLookupOp op) : PagedRows(builder, placeOf(op)) {}
  PagedRows(CopyBuilder &builder, RowAddressesOp op) : PagedRows(builder, placeOf(op)) {}
  PagedRows(CopyBuilder &builder, AsyncDmaOp op) : PagedRows(builder, placeOf(op)) {}

  /// The entries of the lanes' rows. One or, if there may be wide ones, two instructions of vector memory.
  Value lookUp(Value table, Value wide);

  /// The addresses of the lanes' rows; `missing`, an address, where no entry was read.
  Value addresses(Value base, Value entries, Value pageStrideBytes, Value rowStrideBytes, Value missing);

private:
  struct Place {
    Value firstRow, rowLimit, pageRows, pageMagic, pageShift, holeBegin, holeEnd;
  };
  template <typename Op> static Place placeOf(Op op) {
    return {op.getFirstRow(),  op.getRowLimit(),  op.getPageRows(), op.getPageMagic(),
            op.getPageShift(), op.getHoleBegin(), op.getHoleEnd()};
  }
  PagedRows(CopyBuilder &builder, const Place &place);

  CopyBuilder &b;
  Value rowInPage, page, exists; // of this lane's row
};

} // namespace sluice
