//===- KeyLoops.h - the loops over tiles of keys ----------------------------------------------*- C++ -*-===//
//
// Two loops, built from the same parts:
//
//   plain   tile t: scores, softmax, product with V. For few rows, which need few operations per byte of K
//           and V: memory is the bottleneck.
//   ahead   tile t: scores of t + 1 while the exponentials of t are computed; product of t with V while the
//           maximum of t + 1 is. For many rows, which keep the matrix core and the vector unit busy.
//
// Both hold copies, waits and a barrier for the tiles in LDS; pipeline-async-copies moves them.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "attention/KeyTiles.h"
#include "attention/LoopParts.h"

namespace sluice {

/// The state of each block of rows; `queries`: Q of each. With V in K, the tiles of K and V are the same.
llvm::SmallVector<RowState> plainKeyLoop(const LoopParts &parts, llvm::ArrayRef<Query> queries,
                                         const KeyCopies &copies, const KeyTiles &k, const KeyTiles &v);

/// The state of one block of rows. The first tile of keys has LDS of its own, `firstK`: its scores are
/// computed before the loop. There is at least one tile. `atLastTile` emits a wave's extra work in its last
/// tile; it gets a wave-uniform i32 that changes in the loop.
RowState aheadKeyLoop(const LoopParts &parts, Query &query, const KeyCopies &copies, const KeyTiles &firstK,
                      const KeyTiles &k, const KeyTiles &v, llvm::function_ref<void(mlir::Value)> atLastTile);

} // namespace sluice
