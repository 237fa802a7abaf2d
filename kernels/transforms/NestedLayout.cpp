//===- NestedLayout.cpp - dividing a copied tile among waves and lanes ----------------------------------===//
#include "transforms/NestedLayout.h"

#include "llvm/ADT/STLExtras.h"

#include <numeric>

using namespace mlir;

namespace sluice {

namespace {

// Every lane of a direct-to-LDS load gets a dword of LDS, however little it loads.
constexpr unsigned ldsBytesPerLane = 4;

/// The layout with loads of `width` bytes per lane, or the reason why it does not exist.
FailureOr<NestedLayout> layoutOfWidth(unsigned width, LdsTileType tile, unsigned waves, unsigned waveSize,
                                      unsigned columnGranule, std::string &reason) {
  auto fail = [&](const llvm::Twine &why) {
    reason = why.str();
    return failure();
  };
  unsigned rows = tile.getRows(), rowBytes = tile.getRowBytes(), chunk = tile.getSwizzle().getChunk();
  if (width < ldsBytesPerLane)
    return fail("a lane fills " + llvm::Twine(ldsBytesPerLane) + " bytes of LDS, so rows would have gaps");
  if (width % tile.getElementBytes() != 0)
    return fail("not a whole number of elements of " + llvm::Twine(tile.getElementBytes()) + " bytes");
  if (rowBytes % width != 0) return fail("does not divide a row of " + llvm::Twine(rowBytes) + " bytes");

  NestedLayout layout{};
  layout.elementBytes = width;
  layout.element = {1, width / tile.getElementBytes()};
  if (chunk % layout.element.columns != 0)
    return fail("does not divide a swizzle chunk of " + llvm::Twine(chunk * tile.getElementBytes()) +
                " bytes");
  if (columnGranule % layout.element.columns != 0)
    return fail("does not divide the " + llvm::Twine(columnGranule * tile.getElementBytes()) +
                " bytes that a column limit counts in");

  unsigned pieces = rowBytes / width; // of a row
  layout.thread.columns = std::min(pieces, waveSize);
  layout.thread.rows = waveSize / layout.thread.columns;
  if (waveSize % layout.thread.columns != 0 || pieces % layout.thread.columns != 0)
    return fail("a row of " + llvm::Twine(pieces) +
                " pieces is neither a divisor nor a multiple of a wave of " + llvm::Twine(waveSize));
  if (rows % layout.thread.rows != 0)
    return fail(llvm::Twine(layout.thread.rows) + " rows per instruction do not divide " + llvm::Twine(rows) +
                " rows");

  NestedLayout::Pair parts{rows / layout.thread.rows, pieces / layout.thread.columns};
  layout.subgroup.rows = std::gcd(waves, parts.rows);
  layout.subgroup.columns = std::gcd(waves / layout.subgroup.rows, parts.columns);
  if (layout.subgroup.rows * layout.subgroup.columns != waves)
    return fail(llvm::Twine(waves) + " waves do not divide " + llvm::Twine(parts.rows) + "x" +
                llvm::Twine(parts.columns) + " instructions");
  layout.batch = {parts.rows / layout.subgroup.rows, parts.columns / layout.subgroup.columns};
  return layout;
}

/// A lane moves four rows of 8 columns, or of fewer columns if these are too many for all lanes: at least one
/// dword.
FailureOr<NestedLayout> layoutByColumns(LdsTileType tile, unsigned waves, unsigned lanes,
                                        std::string &reason) {
  constexpr unsigned rows = ColumnLayout::quadRows;
  unsigned groupsOfRows = ColumnLayout{tile.getColumns(), tile.getElementBytes()}.quadsOfUnit();
  for (unsigned columns = FetchRowsOp::laneColumns; columns * tile.getElementBytes() >= 4; columns /= 2) {
    NestedLayout layout{};
    layout.element = {rows, columns};
    layout.elementBytes = columns * tile.getElementBytes();
    layout.thread = {groupsOfRows, lanes / groupsOfRows};
    NestedLayout::Pair whole = layout.waveTile();
    NestedLayout::Pair parts{tile.getRows() / whole.rows, tile.getColumns() / whole.columns};
    layout.subgroup.rows = std::gcd(waves, parts.rows);
    layout.subgroup.columns = parts.columns == 0 ? 0 : std::gcd(waves / layout.subgroup.rows, parts.columns);
    // The two lane groups of an operand are rows of neighbouring waves.
    if (layout.subgroup.rows * layout.subgroup.columns != waves || layout.subgroup.rows % 2 != 0) continue;
    layout.batch = {parts.rows / layout.subgroup.rows, parts.columns / layout.subgroup.columns};
    return layout;
  }
  reason = std::to_string(waves) +
           " waves do not divide it in four rows of 8 columns, or a part of them, for each lane";
  return failure();
}

} // namespace

FailureOr<NestedLayout> computeNestedLayout(LdsTileType tile, unsigned waves, const Chip &chip,
                                            unsigned columnGranule, std::string &reason) {
  reason.clear();
  for (unsigned width : llvm::reverse(chip.directToLdsBytes)) {
    std::string why;
    FailureOr<NestedLayout> layout = layoutOfWidth(width, tile, waves, chip.waveSize, columnGranule, why);
    if (succeeded(layout)) {
      reason.clear();
      return layout;
    }
    reason += (reason.empty() ? "" : "; ") + std::to_string(width) + " bytes: " + why;
  }
  return failure();
}

FailureOr<NestedLayout> computeFetchLayout(LdsTileType tile, unsigned waves, unsigned lanes,
                                           std::string &reason) {
  constexpr unsigned columns = FetchRowsOp::laneColumns;
  if (tile.getByColumns()) return layoutByColumns(tile, waves, lanes, reason);
  return layoutOfWidth(columns * tile.getElementBytes(), tile, waves, lanes, columns, reason);
}

} // namespace sluice
