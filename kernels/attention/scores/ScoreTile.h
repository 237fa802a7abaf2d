//===- ScoreTile.h - the scores of a tile of keys, while they are changed ---------------------*- C++ -*-===//
//
// What the changes of scores share: where a lane's scores are, and how to change each of them.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "attention/KeyScales.h"
#include "package/kernel_name.h"

#include <functional>
#include <optional>

namespace sluice {

using Scores = llvm::SmallVector<mlir::Value>; // a block of each, in the layout of Visibility::hide

/// A lane's row of a block, located again in the loop in which `changing` changes: if kept, it would occupy
/// registers throughout the loop.
using LocateRow = std::function<LaneRows(mlir::Value changing)>;

/// Where a lane's scores of a tile are.
struct RowPlace {
  mlir::Value firstKey; // of the lane's first score
  mlir::Value head, row;
  mlir::Value lane, laneGroup;
};

struct ScoreTile {
  using Value = mlir::Value;

  Emitter &b;
  const Arguments &arguments;
  Sequence sequence;
  KeyRange keys;
  MfmaLayout layout;
  LocateRow locate;
  Value firstKey;
  unsigned blocks;
  bool areZero;          // only what is hidden matters
  bool looksUpKeyScales; // see KeyScaling
  Arguments inLoop;      // whose late loads stay in the loop over the tiles
  Value lastKey;         // of the sequence
  RowPlace place = {};
  Value isWhole = {}; // the sequence has all keys of the tile
  Value scale = {};   // of raw scores

  bool isPrefill() const { return layout.rows == package::prefill_rows_of_wave; }
  /// Finds the place of the lane's row.
  LaneRows find(Value changing);

  /// Changes each score; `key` is its number in the sequence.
  using Change = llvm::function_ref<Value(Value score, Value key)>;
  Scores each(llvm::ArrayRef<Value> scores, Change change) const;
  /// Each score with the value that the lane with its key's number has made: four at a time.
  Scores eachOfKey(llvm::ArrayRef<Value> scores, const LaneRows &rows, Value laneValues,
                   llvm::function_ref<Value(Value score, Value keyValue)> combine) const;

  /// In elements from the start of a matrix with a row for each row of q, a bias or a mask.
  Value rowOf(llvm::StringRef matrix) const;
  /// An element of an array with one for each query head, or several such arrays.
  Value headElement(Value array, llvm::StringRef batchStride) const;
};

/// Exponents have room for scales of V from the least on; smaller ones count as it.
inline mlir::Value leastScaleOrMore(Emitter &b, mlir::Value scaleOfValue) {
  constexpr double least = 0x1p-60;
  return b.maxF(scaleOfValue, b.f32(least));
}

/// A scale of V for each key, loaded by the lane with the key's number.
inline mlir::Value lookUpScaleOfValue(Emitter &b, const Arguments &arguments, const LaneRows &rows,
                                      const KeyRange &keys, mlir::Value tileKey) {
  return leastScaleOrMore(b, loadKeyScale(b, arguments, rows, keys, "v", tileKey));
}

/// What a call asks of a change.
struct Asked {
  mlir::Value isAsked;  // wave-uniform
  mlir::Value argument; // for apply
};

/// A bias or a mask, if the call has one and the sequence a key: without keys there may be no memory of it.
Asked askMatrix(const ScoreTile &tile, llvm::StringRef matrix);

/// One kind of change, after the scaling of raw scores. Scores are in units of the base-2 exponent.
struct ScoreChange {
  Asked (*ask)(const ScoreTile &tile);
  /// In the branch of calls that ask for it.
  Scores (*apply)(const ScoreTile &tile, llvm::ArrayRef<mlir::Value> scores, mlir::Value argument);
};

// Each in the file of its name.
#define SLUICE_DECLARE_CHANGE(name) extern const ScoreChange name;
SLUICE_SCORE_CHANGES(SLUICE_DECLARE_CHANGE)
#undef SLUICE_DECLARE_CHANGE

#define SLUICE_LIST_CHANGE(name) &name,
inline const ScoreChange *const scoreChanges[] = {SLUICE_SCORE_CHANGES(SLUICE_LIST_CHANGE)};
#undef SLUICE_LIST_CHANGE

/// Raw scores in units of the exponent, with their keys' scales.
Scores scaledScores(ScoreTile &tile, llvm::ArrayRef<mlir::Value> raw, const LaneRows &rows);

} // namespace sluice
