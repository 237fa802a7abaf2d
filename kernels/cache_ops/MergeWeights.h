//===- MergeWeights.h - weights of parts, and their sums --------------------------------------*- C++ -*-===//
#pragma once

#include "cache_ops/MergeParts.h"

namespace sluice {

/// A sink acts as a part whose rows are 0. In the LSEs' unit; -infinity without one.
mlir::Value loadSink(const MergeRow &row);

/// The sums of a chunk, each with F32 numbers.
struct MergeSums {
  llvm::SmallVector<mlir::Value> elements; // weighted
  mlir::Value weights;

  static MergeSums zero(const MergeRow &row);
  static auto members(auto &of) { return std::tie(of.elements, of.weights); }
};

/// The weights exp(LSE - offset). The offset is the largest LSE that is a number, of all slots and the sink.
class MergeWeights {
public:
  using Value = mlir::Value;

  /// `laneMaximum`: the largest LSE of the lane's parts.
  MergeWeights(const MergeRow &row, Value laneMaximum, Value sink);

  /// The sums after adding the parts that count.
  MergeSums add(const LaneParts &parts, const MergeChunk &chunk, MergeSums sums) const;

  /// The sum of the weights of all slots, with the sink's.
  Value withSink(Value sum) const;

  /// The result's LSE.
  Value lse(Value sum) const;

private:
  Value weight(Value lse) const;

  const MergeRow &row;
  const Value sink, offset;
};

/// The largest of several LSEs.
mlir::Value largest(const MergeRow &row, mlir::ValueRange lses);

} // namespace sluice
