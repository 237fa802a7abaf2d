//===- LoopParts.h - the parts of every loop over tiles of keys -------------------------------*- C++ -*-===//
#pragma once

#include "attention/RowMap.h"
#include "attention/RowState.h"
#include "attention/ScoreRules.h"
#include "attention/TileProducts.h"

namespace sluice {

struct LoopParts {
  Emitter &b;
  TileMath &math;
  const Visibility &visibility;
  const KeyRange &keys;
  mlir::Value waveEnd; // see WaveKeys
  // Per block of rows:
  llvm::ArrayRef<ScoreRules> rules;
  llvm::ArrayRef<Softmax> softmax;
  const TileProducts &products;
};

} // namespace sluice
