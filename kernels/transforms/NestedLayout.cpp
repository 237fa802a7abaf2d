//===- NestedLayout.cpp - the division of a copied tile
//---------------------------------------------------===//
#include "transforms/NestedLayout.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace sluice {

FailureOr<NestedLayout> computeNestedLayout(LdsTileType tile, unsigned waves, const Chip &chip,
                                            std::string &reason) {
  llvm::raw_string_ostream why(reason);
  unsigned swizzleChunk = tile.getSwizzle().getChunk();
  for (unsigned width : llvm::reverse(chip.directToLdsBytes)) {
    auto skip = [&](const llvm::Twine &text) {
      why << (reason.empty() ? "" : "; ") << width << " bytes: " << text;
    };
    if (width % tile.getElementBytes() != 0) {
      skip("not a whole number of elements");
      continue;
    }
    unsigned columns = width / tile.getElementBytes();
    if (tile.getColumns() % columns != 0 || (swizzleChunk != 0 && swizzleChunk % columns != 0)) {
      skip("does not divide the row or the swizzle chunk");
      continue;
    }
    unsigned units = tile.getColumns() / columns;
    unsigned threadColumns = std::min(units, chip.waveSize);
    // Rows longer than a wave's reach would need several instructions per row: no kernel has them.
    if (units > chip.waveSize || chip.waveSize % threadColumns != 0) {
      skip("a row of " + llvm::Twine(units) + " pieces does not divide a wave of " +
           llvm::Twine(chip.waveSize));
      continue;
    }
    unsigned threadRows = chip.waveSize / threadColumns;
    if (tile.getRows() % (threadRows * waves) != 0) {
      skip(llvm::Twine(waves) + " waves of " + llvm::Twine(threadRows) + " rows do not divide " +
           llvm::Twine(tile.getRows()) + " rows");
      continue;
    }
    reason.clear();
    return NestedLayout{columns,    width, threadColumns,
                        threadRows, waves, tile.getRows() / (threadRows * waves)};
  }
  return failure();
}

} // namespace sluice
