//===- ScoreRules.h - turning a tile's raw scores into the softmax's input --------------------*- C++ -*-===//
//
// ScoreChanges and Visibility for the rows of one wave. Masks are applied only on the tiles that need them,
// with one uniform branch per tile and wave.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "attention/ScoreChanges.h"
#include "attention/Visibility.h"

namespace sluice {

class ScoreRules {
public:
  using Value = mlir::Value;

  ScoreRules(Emitter &b, const ScoreChanges &changes, const Visibility &visibility,
             const Visibility::Rows &rows, MfmaLayout layout, Value laneGroup)
      : b(b), changes(changes), visibility(visibility), rows(rows), layout(layout), laneGroup(laneGroup) {}

  struct Applied {
    llvm::SmallVector<Value> scores;
    Value hidden; // i32: see ScoreChanges
  };
  /// `blocks`: raw scores in the layout of Visibility::hide. Hidden ones become -infinity. `found`: see
  /// KeyPages; null without pages. `loaded`: the tile's scales, if they are loaded.
  Applied apply(llvm::ArrayRef<Value> blocks, Value tileKey, Value found,
                const TileScales *loaded = nullptr) const {
    Applied applied = apply(blocks, tileKey, b.boolean(true), ScoreChanges::ScoresAre::Any, loaded);
    if (found) applied.scores = visibility.hideMissing(applied.scores, found, layout, laneGroup);
    return applied;
  }
  /// The same without pages that hide keys; the scores are unused if `isNeeded`, wave-uniform, is false.
  Applied applyIf(Value isNeeded, llvm::ArrayRef<Value> blocks, Value tileKey) const {
    return apply(blocks, tileKey, isNeeded, ScoreChanges::ScoresAre::Any);
  }
  /// Applies the rules to scores of zero. Only those of hidden keys become -infinity.
  llvm::SmallVector<Value> applyToZeros(llvm::ArrayRef<Value> zeros, Value tileKey) const {
    return apply(zeros, tileKey, b.boolean(true), ScoreChanges::ScoresAre::Zero).scores;
  }

  /// Makes the denominator of a tile's scores, which apply() returned.
  auto denominators(Value tileKey) const {
    return [this, tileKey](Value sum, llvm::ArrayRef<Value> scores, Value offset) {
      return changes.denominator(sum, scores, offset, tileKey, layout);
    };
  }

  /// Adds the exponentials of apply()'s scores to a sum, for tiles whose scales are loaded.
  auto denominators(const TileScales &loaded) const {
    return [this, loaded](Value sum, llvm::ArrayRef<Value> exponentials) {
      return changes.denominator(sum, exponentials, loaded);
    };
  }

  /// Whether apply(), which returned `hidden`, may have hidden keys of the tile from some row of the wave;
  /// wave-uniform. Keys without a page do not count: their rows are zeros.
  Value mayHide(Value tileKey, Value hidden) const {
    return b.either(visibility.mayHide(tileKey, rows), changes.mayHide(hidden, layout));
  }

  /// The tiles of Visibility::openTiles, if nothing changes the scores.
  Visibility::Tiles usualTiles(Value waveEnd) const {
    Visibility::Tiles tiles = visibility.openTiles(rows, waveEnd);
    tiles.end = b.select(changes.any(), tiles.first, tiles.end);
    return tiles;
  }

private:
  Applied apply(llvm::ArrayRef<Value> blocks, Value tileKey, Value isNeeded, ScoreChanges::ScoresAre are,
                const TileScales *loaded = nullptr) const {
    auto [changed, hidden] = changes.apply(blocks, tileKey, isNeeded, layout, are, loaded);
    return {visibility.hide(changed, tileKey, rows, layout, laneGroup), hidden};
  }

  Emitter &b;
  const ScoreChanges &changes;
  const Visibility &visibility;
  Visibility::Rows rows;
  MfmaLayout layout;
  Value laneGroup;
};

} // namespace sluice
