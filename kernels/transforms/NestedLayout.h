//===- NestedLayout.h - which wave and lane copy which part of a tile -------------------------*- C++ -*-===//
//
// A workgroup-level copy of a row-major tile, divided into direct-to-LDS loads. From the inside out:
//
//   element   columns one lane moves in one instruction
//   thread    lanes of a wave, filled from the innermost dimension outward
//   outer     always one
//   subgroup  waves of the workgroup, filled from the outermost dimension inward
//   batch     what remains: the instructions each wave issues
//
// so that in each dimension place = ((batch * subgroup + wave) * thread + lane) * element. Waves are inside
// the batch: the rows of one wave then share their swizzle phase wherever the tile allows it, and one address
// register serves all its loads.
//
// A wave instruction writes contiguous bytes of LDS. Its lanes therefore fill either part of one row or
// several whole rows. Copies through registers are divided in the same way; their `element` is what a lane
// writes.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "dialect/Sluice.h"
#include "target/Chips.h"

namespace sluice {

struct NestedLayout {
  /// Rows and columns of a position in the tile, or the counts of a level in each dimension.
  struct Pair {
    unsigned rows, columns;
    bool operator==(const Pair &) const = default;
  };

  Pair element;          // {1, columns per lane}
  Pair thread;           // lanes
  Pair subgroup;         // waves
  Pair batch;            // instructions of a wave
  unsigned elementBytes; // bytes per lane and instruction

  static constexpr Pair outer{1, 1};

  unsigned instructions() const { return batch.rows * batch.columns; } // per wave
  Pair waveTile() const { return {thread.rows * element.rows, thread.columns * element.columns}; }
  Pair batchTile() const { return {subgroup.rows * waveTile().rows, subgroup.columns * waveTile().columns}; }

  /// The first element that a lane of a wave moves in an instruction.
  Pair place(unsigned instruction, unsigned wave, unsigned lane) const {
    return {(instruction / batch.columns * subgroup.rows + wave / subgroup.columns) * waveTile().rows +
                lane / thread.columns * element.rows,
            (instruction % batch.columns * subgroup.columns + wave % subgroup.columns) * waveTile().columns +
                lane % thread.columns * element.columns};
  }

  bool operator==(const NestedLayout &) const = default;
};

/// The layout of a copy of `tile` by `waves` waves on `chip`. It uses the widest loads that can do it and
/// whose lanes do not have columns of two granules; a granule of 0 columns sets no limit. On failure `reason`
/// says for each width of the chip, widest first, which extent breaks which rule.
mlir::FailureOr<NestedLayout> computeNestedLayout(LdsTileType tile, unsigned waves, const Chip &chip,
                                                  unsigned columnGranule, std::string &reason);

/// The layout of rows that go through registers, copied by `lanes` lanes of each wave, which write 16 bytes
/// of LDS at a time. A lane's neighbours write the adjacent chunks, as the banks require.
mlir::FailureOr<NestedLayout> computeFetchLayout(LdsTileType tile, unsigned waves, unsigned lanes,
                                                 std::string &reason);

} // namespace sluice
