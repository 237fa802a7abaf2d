//===- RegisterLoop.h - the loop of a wave over tiles of keys of its own ----------------------*- C++ -*-===//
//
// For few rows whose keys the waves of a workgroup divide: wave w takes the tiles first + w, first + w +
// waves and so on. K of the wave's next tile is loaded as soon as the scores have been computed from this
// one's, V as soon as the product has: a wave always has loads in flight. The page table's entries are read
// one tile ahead of that, in front of the loads, since memory answers in order. Waves meet after the loop:
// see joinWaves.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "attention/KeyRegisters.h"
#include "attention/LoopParts.h"

namespace sluice {

/// The state of the wave's rows, which are one block, with the keys of its tiles.
RowState registerKeyLoop(const LoopParts &parts, const Query &query, const KeyPages &pages,
                         const KeyRegisters &registers, const HeadColumns &columns, mlir::Value wave,
                         unsigned waves);

/// What the waves of a workgroup come to together, for the same rows.
struct JoinedState {
  mlir::Value maximum, sum; // the sum of all keys
  /// Register `wave` of the tiles of O^T: of each, the column 4 * laneGroup + wave.
  llvm::SmallVector<mlir::Value> output;
};

/// Exchanges what the waves have, by way of LDS. `waves` is the number of registers of a tile of O^T that are
/// neighbouring columns.
JoinedState joinWaves(Emitter &b, TileMath &math, const Softmax &softmax, const LaneRows &rows,
                      const RowState &state, unsigned waves);

} // namespace sluice
