//===- MergeStore.cpp - a row of the result -------------------------------------------------------------===//
#include "cache_ops/MergeStore.h"

#include "attention/Fp8Math.h"

using namespace mlir;

namespace sluice {

static bool isFp8(const MergeRow &row) {
  return row.result.isInteger(8);
}

ResultScale loadScale(const MergeRow &row) {
  if (!isFp8(row)) return {};
  MergeEmitter &b = row.b;
  Value scales = row.arguments["o_scale"];
  return b.branch(
      b.isNull(scales), [&] { return Emitter::Divisor{b.f32(1), b.i32(0)}; },
      [&] {
        Value zero = b.i32(0), head = row.divide().head;
        Value index = b.select(row.arguments.may(package::merge_o_scale_heads), head, zero);
        return b.divisorOf(b.load(b.getF32Type(), scales, b.zeroExtend(index), 4));
      });
}

/// The first element of the row in a tensor of the result, whose rows have `width` elements.
static Value startInResult(const MergeRow &row, const MergePlace &place, const ResultTensor &tensor,
                           Type type, Value width) {
  MergeEmitter &b = row.b;
  const MergeArguments &arguments = row.arguments;
  return b.branch(
      arguments.may(package::merge_to_plain_rows),
      [&] {
        Value element = b.mul(b.zeroExtend(row.number), b.zeroExtend(width));
        return b.advance(arguments[tensor.start], type, element);
      },
      [&] {
        return advanceBy(b, arguments[tensor.start], type,
                         {{place.sequence, arguments[tensor.batchStride]},
                          {place.token, arguments[tensor.tokenStride]},
                          {row.divide().head, arguments[tensor.headStride]}});
      });
}

Value findResult(const MergeRow &row, const MergePlace &place) {
  MergeEmitter &b = row.b;
  Value width = b.mul(row.arguments["row_chunks"], b.i32(chunkElements));
  return startInResult(row, place, resultRows, row.result, width);
}

Value MergeStore::rounded(ArrayRef<Value> elements) const {
  MergeEmitter &b = row.b;
  if (isFp8(row)) return fp8::rounded(b, elements);
  Value wide = b.pack(VectorType::get(MergeLanes::runElements, b.getF32Type()), elements);
  if (row.result.isF32()) return wide;
  return b.round(VectorType::get(MergeLanes::runElements, row.result), wide);
}

void MergeStore::storeRun(Value stores, ValueRange run, Value factor, Value begin) const {
  MergeEmitter &b = row.b;
  b.when(stores, [&] {
    SmallVector<Value> elements;
    for (Value value : run) {
      value = b.mulF(value, factor);
      elements.push_back(scale ? b.timesPowerOf2(value, scale->exponent) : value);
    }
    b.store(rounded(elements), start, b.zeroExtend(begin),
            MergeLanes::runElements * row.result.getIntOrFloatBitWidth() / 8);
  });
}

Value MergeStore::storeChunk(const MergeWeights &weights, const MergeSums &laneSums,
                             const MergeChunk &chunk) const {
  MergeEmitter &b = row.b;
  const MergeLanes &lanes = row.lanes;
  auto joined = lanes.join(b, carried::flatten(laneSums), [&](Value x, Value y) { return b.addF(x, y); });
  MergeSums sums = carried::withValues(laneSums, joined);
  Value sum = weights.withSink(sums.weights);
  Value inverse = b.select(b.equalF(sum, b.f32(0)), b.f32(0), b.reciprocal(sum));
  if (scale) inverse = b.mulF(inverse, scale->inverse);
  Value element = lanes.firstElement(b, chunk.number);
  // Two slots store a run each; all slots have both runs.
  auto low = ArrayRef(sums.elements).take_front(MergeLanes::runElements);
  auto high = ArrayRef(sums.elements).drop_front(MergeLanes::runElements);
  Value isFirst = b.equal(lanes.slot, b.i32(0)), afterFirst = b.add(element, lanes.toSecondRun);
  b.branch(
      b.less(b.i32(0), b.opaqueScalar(lanes.slotsLog2)),
      [&] {
        SmallVector<Value> mine;
        for (auto [x, y] : llvm::zip_equal(low, high))
          mine.push_back(b.select(isFirst, x, y));
        Value begin = b.select(isFirst, element, afterFirst);
        Value stores = b.both(chunk.matters, b.lessUnsigned(lanes.slot, b.i32(2)));
        storeRun(stores, mine, inverse, begin);
      },
      [&] {
        storeRun(b.both(chunk.matters, isFirst), low, inverse, element);
        storeRun(b.both(chunk.matters, isFirst), high, inverse, afterFirst);
      });
  return sum;
}

void MergeStore::storeLse(const MergeWeights &weights, Value sum) const {
  MergeEmitter &b = row.b;
  const MergeLanes &lanes = row.lanes;
  b.when(b.isFalse(b.isNull(row.arguments["lse"])), [&] {
    ROCDL::SBarrierOp::create(b);
    Value isFirst = b.both(b.equal(lanes.firstChunk, b.i32(0)), b.equal(lanes.slot, b.i32(0)));
    b.when(b.both(place.isWanted, isFirst), [&] {
      Value lse = weights.lse(sum);
      b.store(lse, startInResult(row, place, resultLses, b.getF32Type(), b.i32(1)), b.i64(0), 4);
    });
  });
}

} // namespace sluice
