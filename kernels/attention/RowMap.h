//===- RowMap.h - which rows and which keys a workgroup, a wave and a lane have ---------------*- C++ -*-===//
//
// The rows of a sequence are numbered in one of two ways:
//
//   of a head    row = token. A workgroup has rows of one query head.
//   of a group   row = token * group + head of the group. A workgroup has rows of all query heads that
//                share a KV head, so that their keys are read once (grouped-query attention, Ainslie et al.
//                2023, arXiv 2305.13245): a token of a model with 8 heads to a KV head fills half of 16 rows.
//
// A workgroup has `tileQ` rows, a wave a block of as many of them as its MFMAs have columns, or several, and
// a lane one of each block, which it shares with the other lane groups (MfmaLayout.h).
//
// The keys of a group's rows can be divided among the workgroups of `parts` (split-KV: Dao et al. 2023,
// "Flash-Decoding"). Parts take whole tiles in order; which ones follows from the sequence only, where
// part_tiles is set.
//
// Nothing here depends on where keys are read to. Each step returns what it adds, and emits its arithmetic
// where it is called: all but the first belong inside the branch that workgroups without rows do not take.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "attention/Arguments.h"
#include "attention/MfmaLayout.h"
#include "attention/Visibility.h"

namespace sluice {

/// Known before it is known whether there is any work. All wave-uniform.
struct WorkgroupRows {
  Sequence sequence;
  mlir::Value first, count; // the workgroup's first row, and how many the sequence has of the head or group
  mlir::Value any;          // whether this workgroup has rows that the launch computes
  mlir::Value qHead;        // of all rows; for rows of a group each lane has its own
  mlir::Value kvHead;       // for rows of a head by locateKvHead
  mlir::Value part;         // which of `parts`; null for rows of a head
};

/// With what a lane has of a block of rows.
struct LaneRows : WorkgroupRows {
  mlir::Value lane, laneRow, laneGroup; // lane number, modulo and divided by the rows of a block
  mlir::Value wave;                     // its number ...
  mlir::Value waveOfRows;               // ... and among those with the same rows
  mlir::Value waveFirst;                // first row of the wave
  mlir::Value row;                      // may be past the end: see token
  mlir::Value token;                    // of the row; a group's rows past the end repeat the last one's
};

/// The keys that the rows of a wave need, of the tiles that Visibility has chosen.
struct WaveKeys {
  llvm::SmallVector<Visibility::Rows> rows; // what hides keys from those of each block
  mlir::Value end;                          // this wave needs none of the keys at or past it
};

/// The part of those tiles that the workgroup goes through.
struct KeyRange {
  mlir::Value firstTile, endTile; // by their numbers in Visibility
  mlir::Value keyLimit;           // keys at or past it are not read ...
  mlir::Value holeBegin, holeEnd; // ... nor, in pages, those between these: no row sees them
};

class RowMap {
public:
  using Value = mlir::Value;
  enum class RowsOf { head, group };

  /// `wavesOfRows` neighbouring waves have the same rows: `rowBlocks` blocks of them.
  RowMap(Emitter &b, const Arguments &arguments, RowsOf rowsOf, unsigned wavesOfRows, unsigned rowBlocks,
         unsigned tileQ, MfmaLayout layout)
      : b(b), arguments(arguments), rowsOf(rowsOf), wavesOfRows(wavesOfRows), rowBlocks(rowBlocks),
        tileQ(tileQ), layout(layout) {}

  WorkgroupRows locateWorkgroup() const;
  /// A lane's rows, one of each block. `isAgain`: LLVM does not keep them in registers since they were
  /// located before.
  llvm::SmallVector<LaneRows> locateLane(const WorkgroupRows &workgroup, bool isAgain = false) const;
  /// The KV head of rows of a head, which nothing before ScoreChanges needs; those of a group have it
  /// already.
  void locateKvHead(LaneRows &rows) const;
  /// Chooses the tiles that the workgroup's rows need.
  WaveKeys chooseTiles(llvm::ArrayRef<LaneRows> blocks, Visibility &visibility) const;
  /// The tiles that the workgroup goes through: all of them, or those of its part.
  KeyRange choosePart(const LaneRows &rows, const Visibility &visibility, unsigned tileKv) const;

private:
  bool ofGroup() const { return rowsOf == RowsOf::group; }
  Value tokenOf(Value row) const;
  Value withinEnd(Value row, Value lastRow) const;

  Emitter &b;
  const Arguments &arguments;
  RowsOf rowsOf;
  unsigned wavesOfRows, rowBlocks;
  unsigned tileQ;
  MfmaLayout layout;
};

} // namespace sluice
