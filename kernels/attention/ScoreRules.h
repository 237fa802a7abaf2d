//===- ScoreRules.h - what a tile's raw scores become before the softmax ----------------------*- C++ -*-===//
//
// ScoreChanges and Visibility for the rows of one wave. Masks are applied on the tiles that need them, one
// uniform branch per tile and wave.
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

  /// `blocks`: raw scores, as Visibility::hide has them. Hidden ones become -infinity.
  llvm::SmallVector<Value> apply(llvm::ArrayRef<Value> blocks, Value tileKey) const {
    return visibility.hide(changes.apply(blocks, tileKey, layout), tileKey, rows, layout, laneGroup);
  }

  /// Whether apply() may hide keys of the tile from some row of the wave; wave-uniform.
  Value mayHide(Value tileKey) const {
    return b.either(visibility.mayHide(tileKey, rows), changes.mayHide());
  }

private:
  Emitter &b;
  const ScoreChanges &changes;
  const Visibility &visibility;
  Visibility::Rows rows;
  MfmaLayout layout;
  Value laneGroup;
};

} // namespace sluice
