//===- PagedRows.h - addresses of the rows of a page table, one row per lane ------------------*- C++ -*-===//
//
// The lanes of a wave find the next rows together, one row each:
//
//   page    = (first_row + lane) / rows                  a multiplication, if the host has prepared it
//   entry   = table[page]                                 one load for all lanes
//   address = base + entry * page_stride + (row in page) * row_stride
//
// Users of a row take its address from its lane. The cost of a tile of up to a wave of rows is therefore the
// same for pages of any size, and K and V share the entries.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "transforms/CopyBuilder.h"

namespace sluice {

class PagedRows {
public:
  using Value = mlir::Value;

  /// The rows of a page_lookup, of row_addresses or of a gather. `lanes`: lanes of a wave.
  template <typename Op>
  PagedRows(CopyBuilder &builder, Op op, unsigned lanes)
      : PagedRows(builder, op.getFirstRow(), op.getRowLimit(),
                  op.getPages().template getDefiningOp<PagesOp>(), lanes) {}

  /// The entries of the lanes' rows: one vector-memory instruction, or two if there may be wide entries.
  Value lookUp(Value table, Value wide);

  /// Packs of 2^log2 rows, whose rows are `elementBytes` apart.
  struct Packs {
    Value log2, elementBytes;
  };
  /// The addresses of the lanes' rows, or the address `missing` where no entry was read or the entry is not a
  /// page. `packs`: the row stride is between them; or null.
  Value addresses(Value base, Value entries, Value pageStrideBytes, Value rowStrideBytes, Value missing,
                  const Packs *packs = nullptr);

private:
  PagedRows(CopyBuilder &builder, Value firstRow, Value rowLimit, PagesOp pages, unsigned lanes);

  CopyBuilder &b;
  unsigned lanes;
  Value rowInPage, page, exists; // of this lane's row
  Value lastLow, lastHigh;       // may be null
};

/// Whether a half of this lane's entry, the lower one first, is at most that of the last page. An entry is a
/// page if both are.
mlir::Value isAtMost(CopyBuilder &builder, mlir::Value entries, unsigned half, mlir::Value last);

} // namespace sluice
