//===- ColumnLayout.h - the position of an element in a tile by columns -----------------------*- C++ -*-===//
//
// V^T is an operand of O^T += V^T * P^T, and a lane needs eight bytes of keys of one of its columns. P^T
// comes out of the first product with the keys of lane group g being 8n + 4g + 0..3 (MfmaLayout.h, R = 32). A
// tile by columns holds them in that order: 16 bytes of a column, which one ds_read_b128 gives a lane, are
// the operands of two steps, or keys
//
//   of one byte    32t + 4g + 0..3, + 8 + 0..3, + 16 + 0..3, + 24 + 0..3
//   of two bytes   16t + 4g + 0..3, + 8 + 0..3
//
// Units of 16 bytes from columns that are 8 apart are adjacent, so that neither reads nor writes conflict in
// a bank: the lanes that LDS serves together read columns that are `columns / 32` apart, or write four rows
// of 8 columns each, or fewer in small tiles. Where two of them would still share a unit of a line, the lower
// bits of the column change the order of units.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "dialect/Swizzle.h"

#include <algorithm>

namespace sluice {

struct ColumnLayout {
  unsigned columns;      // of the tile: a power of two
  unsigned elementBytes; // 1 or 2

  static constexpr unsigned unitBytes = 16; // of a column
  static constexpr unsigned leastColumns = 64;
  static constexpr unsigned quadRows = 4; // that one lane writes together

  constexpr unsigned quadsOfUnit() const { return unitBytes / (quadRows * elementBytes); }
  /// Rows that the units of two lane groups hold together.
  constexpr unsigned rows() const { return 2 * unitBytes / elementBytes; }

  /// The byte offset of element (row, column) in the tile.
  template <typename Arithmetic>
  constexpr typename Arithmetic::Number offset(Arithmetic &&a, typename Arithmetic::Number row,
                                               typename Arithmetic::Number column) const {
    auto group = a.mask(a.shiftRight(row, 2), 1), quad = a.mask(a.shiftRight(row, 3), quadsOfUnit() - 1);
    auto block = a.add(a.shiftLeft(a.shiftRight(row, std::countr_zero(rows())), 1), group);
    auto place = a.flip(a.shiftRight(column, 3), a.mask(column, 7 & ~(std::min(columns / 32, 8u) - 1)));
    auto line = a.add(a.shiftLeft(block, 3), a.mask(column, 7));
    auto unit = a.add(a.shiftLeft(line, std::countr_zero(columns / 8)), place);
    auto inUnit = a.add(a.shiftLeft(quad, 2), a.mask(row, quadRows - 1));
    return a.add(a.shiftLeft(unit, 4), elementBytes == 1 ? inUnit : a.shiftLeft(inUnit, 1));
  }

  constexpr uint32_t offset(uint32_t row, uint32_t column) const {
    return offset(HostArithmetic(), row, column);
  }
};

} // namespace sluice
