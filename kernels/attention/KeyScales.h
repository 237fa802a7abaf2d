//===- KeyScales.h - a scale for each key of K or V -------------------------------------------*- C++ -*-===//
//
// Scales per token or page are found like rows of K and V: in the same order, through the same page table.
// Each lane loads the scale of one key of a tile, and the other lanes ask it for that (ds_bpermute). Keys
// past the end, and those before the window, whose pages may not exist, get another key's scale: they are
// hidden. A page that does not exist has zeros, as its rows have.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "attention/RowMap.h"

namespace sluice {

/// The scale of one key of the tile from `firstKey` on for each lane, that of its number. `side` is "k" or
/// "v".
mlir::Value loadKeyScale(Emitter &b, const Arguments &arguments, const LaneRows &rows, const KeyRange &keys,
                         llvm::StringRef side, mlir::Value firstKey);

} // namespace sluice
