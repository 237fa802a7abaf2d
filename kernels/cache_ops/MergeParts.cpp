//===- MergeParts.cpp - the parts of a lane's row, in memory and in registers ---------------------------===//
#include "cache_ops/MergeParts.h"

using namespace mlir;

namespace sluice {

Value partBeforeSlot(const MergeRow &row, Value first, unsigned i) {
  MergeEmitter &b = row.b;
  return b.add(first, b.mul(row.lanes.slots, b.i32(i)));
}

Value isPresent(const MergeRow &row, Value partBefore) {
  MergeEmitter &b = row.b;
  return b.less(b.add(row.lanes.slot, partBefore), row.arguments["parts"]);
}

Value presentPart(const MergeRow &row, Value partBefore) {
  MergeEmitter &b = row.b;
  return b.select(isPresent(row, partBefore), b.add(row.lanes.slot, partBefore), b.i32(0));
}

// Comparisons are repeated rather than kept in registers of lanes: hence `opaqueScalar`, here and elsewhere.
Value severalPerLane(const MergeRow &row) {
  MergeEmitter &b = row.b;
  return b.less(b.opaqueScalar(row.lanes.slots), row.arguments["parts"]);
}

Value loadChunk(const MergeRow &row, Value start, Value element) {
  MergeEmitter &b = row.b;
  if (!row.partial.isF32()) return b.load(b.chunkOf(row.partial), start, element, 16);
  auto run = VectorType::get(MergeLanes::runElements, row.partial);
  Value first = b.load(run, start, element, 16);
  Value second = b.load(run, start, b.add(element, b.zeroExtend(row.lanes.toSecondRun)), 16);
  return vector::ShuffleOp::create(b, first, second, ArrayRef<int64_t>{0, 1, 2, 3, 4, 5, 6, 7});
}

LaneParts LaneParts::none(const MergeRow &row, unsigned count) {
  MergeEmitter &b = row.b;
  LaneParts parts;
  parts.lses.assign(count, b.f32(emptyLse));
  parts.chunks.assign(count, b.undef(b.chunkOf(row.partial)));
  return parts;
}

Value counts(const MergeRow &row, const MergeChunk &chunk, Value lse) {
  MergeEmitter &b = row.b;
  return b.both(b.compareF(arith::CmpFPredicate::UNE, lse, b.f32(emptyLse)), chunk.matters);
}

/// The first element of the row in the lane's first part; in part 0 if it has no part or parts are listed.
static Value startOfRow(const MergeRow &row, const PartTensor &tensor, Type type, MergeCode code) {
  MergeEmitter &b = row.b;
  const MergeArguments &arguments = row.arguments;
  MergeRow::TokenAndHead place = row.divide();
  Value hasPart = isPresent(row, b.i32(0));
  if (code == MergeCode::Special)
    hasPart = b.both(hasPart, b.isFalse(arguments.may(package::merge_listed_parts)));
  Value part = b.select(hasPart, row.lanes.slot, b.i32(0));
  return advanceBy(b, arguments[tensor.start], type,
                   {{part, arguments[tensor.partStride]},
                    {place.token, arguments[tensor.tokenStride]},
                    {place.head, arguments[tensor.headStride]}});
}

/// From there to the lane's parts number `begin` to `end` - 1; to any part for those past the last.
static SmallVector<Value> distances(const MergeRow &row, const PartTensor &tensor, MergeCode code,
                                    Value first, unsigned begin, unsigned end) {
  MergeEmitter &b = row.b;
  auto byStride = [&] {
    SmallVector<Value> distances;
    for (unsigned i = begin; i < end; ++i)
      distances.push_back(
          b.mul(b.zeroExtend(partBeforeSlot(row, first, i)), row.arguments[tensor.partStride]));
    return distances;
  };
  if (code == MergeCode::Usual) return byStride();
  return b.branch(
      row.arguments.may(package::merge_listed_parts),
      [&] {
        SmallVector<Value> distances;
        Value list = b.advance(b.kernargSegment(), b.getI8Type(), b.i32(tensor.distances.field().offset));
        for (unsigned i = begin; i < end; ++i) {
          Value part = presentPart(row, partBeforeSlot(row, first, i));
          distances.push_back(b.load(b.getI64Type(), list, b.zeroExtend(part), 8));
        }
        return distances;
      },
      byStride);
}

/// The same of LSEs, with merge_lse_sequences.
static Value startOfLses(const MergeRow &row, MergeCode code) {
  MergeEmitter &b = row.b;
  Value start = startOfRow(row, partialLses, b.getF32Type(), code);
  if (code == MergeCode::Usual) return start;
  return b.branch(
      row.arguments.may(package::merge_lse_sequences),
      [&] {
        Value sequence = b.zeroExtend(row.divideToken(row.divide().token).sequence);
        Value skipped = b.mul(sequence, b.argument("partial_lse_sequence_skip"));
        return b.advance(start, b.getF32Type(), skipped);
      },
      [&] { return start; });
}

PartLses::PartLses(const MergeRow &row, MergeCode code)
    : row(row), code(code), start(startOfLses(row, code)) {}

SmallVector<Value> PartLses::load(Value first, unsigned begin, unsigned end) const {
  MergeEmitter &b = row.b;
  SmallVector<Value> lseDistances = distances(row, partialLses, code, first, begin, end);
  for (auto [i, distance] : llvm::enumerate(lseDistances))
    distance = b.select(isPresent(row, partBeforeSlot(row, first, begin + i)), distance, b.i64(0));
  // Lanes without a row would read another workgroup's row, which may store its LSE meanwhile.
  return b.branch(
      row.exists,
      [&] {
        SmallVector<Value> values;
        for (Value distance : lseDistances)
          values.push_back(b.load(b.getF32Type(), start, distance, 4));
        return values;
      },
      [&] { return SmallVector<Value>(end - begin, b.f32(0)); });
}

SmallVector<Value> PartLses::loadFirst(unsigned depth) const {
  MergeEmitter &b = row.b;
  SmallVector<Value> loaded = load(b.i32(0), 0, 1);
  loaded.append(b.branch(
      severalPerLane(row), [&] { return load(b.i32(0), 1, depth); },
      [&] { return SmallVector<Value>(depth - 1, b.f32(0)); }));
  return loaded;
}

PartChunks::PartChunks(const MergeRow &row, MergeCode code)
    : row(row), code(code), start(startOfRow(row, partialRows, row.partial, code)) {}

Value PartChunks::startOf(Value chunk) const {
  MergeEmitter &b = row.b;
  return b.advance(start, row.partial, b.zeroExtend(row.lanes.firstElement(b, chunk)));
}

LaneParts PartChunks::load(const MergeChunk &chunk, Value chunkStart, Value first, unsigned begin,
                           ValueRange lses) const {
  MergeEmitter &b = row.b;
  LaneParts parts = {SmallVector<Value>(lses), {}};
  const unsigned end = begin + lses.size();
  for (auto [lse, distance] : llvm::zip_equal(lses, distances(row, partialRows, code, first, begin, end)))
    parts.chunks.push_back(b.branch(
        counts(row, chunk, lse), [&, distance = distance] { return loadChunk(row, chunkStart, distance); },
        [&] { return b.undef(b.chunkOf(row.partial)); }));
  return parts;
}

/// Whether a row of a cascade has this part.
Value CountedParts::hasPart(Value part) const {
  MergeEmitter &b = row.b;
  const MergeArguments &arguments = row.arguments;
  Value isOwn = b.less(part, b.select(cascade->isLong, b.i32(1), arguments["own_parts"]));
  Value isPrefix = b.both(cascade->seesPrefix, b.isFalse(b.less(part, arguments["first_prefix_part"])));
  return b.either(isOwn, isPrefix);
}

SmallVector<Value> CountedParts::lses(Value first, unsigned begin, ValueRange loaded) const {
  MergeEmitter &b = row.b;
  Value empty = b.f32(emptyLse);
  if (code == MergeCode::Special)
    empty = b.select(row.arguments.may(package::merge_infinity_is_empty), b.f32(-emptyLse), empty);
  SmallVector<Value> values;
  for (auto [i, lse] : llvm::enumerate(loaded)) {
    Value part = partBeforeSlot(row, first, begin + i), isCounted = isPresent(row, part);
    if (code == MergeCode::Special)
      isCounted = b.both(isCounted, b.compareF(arith::CmpFPredicate::UNE, lse, empty));
    else if (cascade)
      isCounted = b.both(isCounted, hasPart(b.add(row.lanes.slot, part)));
    values.push_back(b.select(isCounted, lse, b.f32(emptyLse)));
  }
  return values;
}

} // namespace sluice
