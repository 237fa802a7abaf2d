//===- MergeStore.h - a row of the result ----------------------------------------------------*- C++ -*-===//
#pragma once

#include "cache_ops/MergeWeights.h"

namespace sluice {

/// What FP8 results are divided by, 1 without a scale; nothing for other types.
using ResultScale = std::optional<Emitter::Divisor>;
ResultScale loadScale(const MergeRow &row);

/// The first element of the row in o.
mlir::Value findResult(const MergeRow &row, const MergePlace &place);

class MergeStore {
public:
  using Value = mlir::Value;

  /// `start`: the row's first element in o.
  MergeStore(const MergeRow &row, const MergePlace &place, Value start, ResultScale scale)
      : row(row), place(place), start(start), scale(scale) {}

  /// Stores the chunk of a lane's sums with those of all slots, and returns the sum of all weights.
  Value storeChunk(const MergeWeights &weights, const MergeSums &laneSums, const MergeChunk &chunk) const;

  /// The row's first lane stores its LSE, when all have read the LSEs of the parts. `sum`: of all weights.
  void storeLse(const MergeWeights &weights, Value sum) const;

private:
  /// A half of the chunk, from element `begin` of the row on, times `factor`.
  void storeRun(Value stores, mlir::ValueRange run, Value factor, Value begin) const;
  Value rounded(llvm::ArrayRef<Value> elements) const;

  const MergeRow &row;
  const MergePlace place;
  const Value start;
  const ResultScale scale;
};

} // namespace sluice
