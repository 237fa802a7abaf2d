//===- RowMap.h - the rows and keys of a workgroup, a wave and a lane -------------------------*- C++ -*-===//
//
// The query heads that share a KV head are a group, and their rows are numbered together:
//
//   row = token * group + head of the group
//
// Their keys are then read once for all of them (grouped-query attention, Ainslie et al. 2023, arXiv
// 2305.13245): in decode a token of a model with 8 heads to a KV head fills half of 16 rows, and in prefill a
// causal mask cuts tiles of few tokens, which waste little of it. Consecutive workgroups have different KV
// heads: with 8 of them, each XCD, which gets every eighth workgroup, has the keys of one.
//
// A workgroup has `tileQ` rows; a wave has one block of them, as many as its MFMAs have columns, or several;
// and a lane has one row of each block, which it shares with the other lane groups (MfmaLayout.h). The last
// rows of a sequence, which see most keys of a causal mask, come first, so that the work that begins last is
// short. If all workgroups take equally long, those of the last round may have half a tile each instead
// (rounds.h).
//
// The keys of rows can be divided among the workgroups of `splits` (split-KV: Dao et al. 2023,
// "Flash-Decoding"). Splits take whole tiles in order; if split_tiles is set, the assignment depends only on
// the sequence.
//
// Nothing here depends on where keys are read to. Each step returns what it adds, and emits its arithmetic
// where it is called: all but the first belong inside the branch that workgroups without rows do not take.
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "attention/Arguments.h"
#include "attention/MfmaLayout.h"
#include "attention/Visibility.h"

namespace sluice {

/// Known before it is known whether there is any work. All wave-uniform.
struct WorkgroupRows {
  Sequence sequence;
  mlir::Value first, end; // the workgroup's first row, and the end of its rows or of the sequence's
  mlir::Value any;        // whether this workgroup has rows that the launch computes
  mlir::Value kvHead;
  mlir::Value split; // which of `splits`
};

/// Adds a lane's share of a block of rows.
struct LaneRows : WorkgroupRows {
  mlir::Value lane, laneRow, laneGroup; // lane number, modulo and divided by the rows of a block
  mlir::Value wave;                     // its number ...
  mlir::Value waveOfRows;               // ... and among those with the same rows
  mlir::Value waveFirst;                // first row of the wave
  mlir::Value row;                      // may be past the end, ...
  mlir::Value token, qHead;             // ... in which case these repeat the last row's
};

/// The keys that the rows of a wave need, among the tiles that Visibility has chosen.
struct WaveKeys {
  llvm::SmallVector<Visibility::Rows> rows; // which keys are hidden from the rows of each block
  mlir::Value end; // keys at or past it are not needed by this wave; none if it has all rows of the workgroup
};

/// The workgroup's share of those tiles.
struct KeyRange {
  mlir::Value firstTile, endTile; // by their numbers in Visibility
  mlir::Value keyLimit;           // keys at or past it are not read, ...
  mlir::Value holeBegin, holeEnd; // ... nor, in pages, those between these: no row sees them
};

class RowMap {
public:
  using Value = mlir::Value;

  /// `wavesOfRows` neighbouring waves have the same rows, in `rowBlocks` blocks.
  RowMap(Emitter &b, const Arguments &arguments, unsigned wavesOfRows, unsigned rowBlocks, unsigned tileQ,
         MfmaLayout layout)
      : b(b), arguments(arguments), wavesOfRows(wavesOfRows), rowBlocks(rowBlocks), tileQ(tileQ),
        layout(layout) {}

  WorkgroupRows locateWorkgroup() const;
  /// A lane's rows, one of each block. `thread` is its number in the workgroup; if that is opaque, LLVM does
  /// not keep earlier results in registers.
  llvm::SmallVector<LaneRows> locateLane(const WorkgroupRows &workgroup, Value thread) const;
  /// Chooses the tiles that the workgroup's rows need.
  WaveKeys chooseTiles(llvm::ArrayRef<LaneRows> blocks, Visibility &visibility) const;
  /// The tiles of the workgroup: all of them, or those of its split.
  KeyRange chooseSplit(const LaneRows &rows, const Visibility &visibility, unsigned tileKv) const;

private:
  /// A tile's place in the grid, and which of its rows a workgroup has.
  struct Tile {
    Value y, z;
    Value exists, isHalf, isUpper; // null in kernels without rounds
  };
  Tile locateTile() const;
  bool hasRounds() const { return package::kernel_has_rounds(tileQ, layout.rows); }
  Value tokenOf(Value row) const;

  Emitter &b;
  const Arguments &arguments;
  unsigned wavesOfRows, rowBlocks;
  unsigned tileQ;
  MfmaLayout layout;
};

} // namespace sluice
