//===- NestedLayout.h - who copies what of a tile ------------------------------------------------*- C++
//-*-===//
//
// A workgroup-level copy of a row-major tile, divided into direct-to-LDS loads. From the inside out:
//
//   element   columns one lane moves in one instruction
//   thread    lanes of a wave, filled from the innermost dimension outward
//   subgroup  waves of the workgroup, over consecutive groups of rows
//   batch     what remains: the instructions each wave issues
//
// so that row = (batch * waves + wave) * threadRows + lane / threadColumns. Waves lie inside the batch: the
// rows of one wave then share their swizzle phase wherever the tile allows it, and one address register
// serves all its loads.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "dialect/Sluice.h"
#include "target/Chips.h"

namespace sluice {

struct NestedLayout {
  unsigned elementColumns; // columns per lane
  unsigned elementBytes;   // bytes per lane
  unsigned threadColumns;  // lanes along a row
  unsigned threadRows;     // rows per wave instruction
  unsigned subgroups;      // waves
  unsigned batches;        // instructions per wave

  unsigned instructionBytes() const { return threadColumns * threadRows * elementBytes; }
};

/// The layout of a copy of `tile` by `waves` waves on `chip`. On failure `reason` names the extent, the
/// widths tried and the rule that is broken.
mlir::FailureOr<NestedLayout> computeNestedLayout(LdsTileType tile, unsigned waves, const Chip &chip,
                                                  std::string &reason);

} // namespace sluice
