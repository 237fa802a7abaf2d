//===- RegisterLoop.h - a wave's loop over its own tiles of keys ------------------------------*- C++ -*-===//
//
// For few rows whose keys the waves of a workgroup divide: wave w takes the tiles first + w, first + w +
// waves and so on. K of the wave's next tile is loaded as soon as this tile's scores have been computed, V as
// soon as its product has: a wave always has loads in flight. The page table's entries are read one tile
// ahead of that, before the loads, since memory answers in order. Waves meet after the loop: see joinWaves.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "attention/KeyPages.h"
#include "attention/LoopParts.h"
#include "attention/OwnTiles.h"

namespace sluice {

/// Loads the scales of the keys of the tile from `firstKey` on, with the entries of its keys.
using LoadScales = llvm::function_ref<TileScales(mlir::Value firstKey, mlir::Value entries)>;

/// The state of the wave's rows, a single block, after the keys of its tiles. `loadScales`: null if no call
/// has a scale for each key.
RowState registerKeyLoop(const LoopParts &parts, Query &query, const KeyPages &pages, OwnTiles &tiles,
                         LoadScales loadScales, mlir::Value wave, unsigned waves);

/// The combined result of a workgroup's waves for the same rows.
struct JoinedState {
  mlir::Value maximum, sum; // the sum of all keys
  /// Register `wave` of the tiles of O^T: the column 4 * laneGroup + wave of each.
  llvm::SmallVector<mlir::Value> output;
};

/// Exchanges the waves' results through LDS. `waves` is the number of registers of a tile of O^T that are
/// neighbouring columns.
JoinedState joinWaves(Emitter &b, TileMath &math, const Softmax &softmax, const LaneRows &rows,
                      const RowState &state, unsigned waves);

} // namespace sluice
