//===- MergeWeights.cpp - weights of parts, and their sums ----------------------------------------------===//
#include "cache_ops/MergeWeights.h"

using namespace mlir;

namespace sluice {

Value loadSink(const MergeRow &row) {
  MergeEmitter &b = row.b;
  Value sinks = row.arguments["sink_logits"];
  return b.branch(
      b.isNull(sinks), [&] { return b.f32(emptyLse); },
      [&] {
        return b.mulF(b.load(b.getF32Type(), sinks, b.zeroExtend(row.divide().head), 4),
                      row.arguments["unit_per_nat"]);
      });
}

MergeSums MergeSums::zero(const MergeRow &row) {
  Value none = row.b.f32(0);
  return {SmallVector<Value>(chunkElements, none), none};
}

/// The largest number in place of a sink that is infinite, as large logits are in units of base 2: its
/// distance to itself is then a number.
static Value limited(MergeEmitter &b, Value sink) {
  return b.minF(sink, b.f32(std::numeric_limits<float>::max()));
}

static Value findOffset(const MergeRow &row, Value laneMaximum, Value sink) {
  MergeEmitter &b = row.b;
  Value maximum = row.lanes.join(b, laneMaximum, [&](Value x, Value y) { return b.maxF(x, y); });
  // NaN is never a maximum, and +infinity is not a number.
  maximum = b.maxF(b.maxF(maximum, limited(b, sink)), b.f32(emptyLse));
  // If no part counts, exponents are relative to 0, which gives 0; relative to -infinity they would be NaN.
  return b.select(b.equalF(maximum, b.f32(emptyLse)), b.f32(0), maximum);
}

MergeWeights::MergeWeights(const MergeRow &row, Value laneMaximum, Value sink)
    : row(row), sink(sink), offset(findOffset(row, laneMaximum, sink)) {}

/// 0 if the LSE is -infinity.
Value MergeWeights::weight(Value lse) const {
  MergeEmitter &b = row.b;
  return b.exp2(b.mulF(b.subF(lse, offset), row.arguments["log2_per_unit"]));
}

MergeSums MergeWeights::add(const LaneParts &parts, const MergeChunk &chunk, MergeSums sums) const {
  MergeEmitter &b = row.b;
  for (auto [lse, elements] : llvm::zip_equal(parts.lses, parts.chunks)) {
    Value factor = weight(lse);
    auto withPart = [&, elements = elements] {
      Value wide = row.partial.isF32() ? elements : b.extend(b.chunkOf(b.getF32Type()), elements);
      MergeSums more;
      for (auto [e, sum] : llvm::enumerate(sums.elements))
        more.elements.push_back(b.fma(factor, b.extract(wide, e), sum));
      more.weights = b.addF(sums.weights, factor);
      return more;
    };
    sums = b.branch(counts(row, chunk, lse), withPart, [&] { return sums; });
  }
  return sums;
}

Value MergeWeights::withSink(Value sum) const {
  MergeEmitter &b = row.b;
  return b.addF(sum, weight(limited(b, sink)));
}

Value MergeWeights::lse(Value sum) const {
  MergeEmitter &b = row.b;
  // The sink has no limit here.
  return b.fma(b.log2(sum), row.arguments["unit_per_log2"], b.maxF(offset, sink));
}

Value largest(const MergeRow &row, ValueRange lses) {
  Value most = lses[0];
  for (Value lse : lses.drop_front())
    most = row.b.maxF(most, lse);
  return most;
}

} // namespace sluice
