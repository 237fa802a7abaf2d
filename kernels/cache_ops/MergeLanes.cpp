//===- MergeLanes.cpp - the lanes of a merge's workgroup and their work ---------------------------------===//
#include "cache_ops/MergeLanes.h"

using namespace mlir;

namespace sluice {

namespace {

constexpr unsigned waveLanes = 64;

Value lowBits(CacheOpEmitter &b, Value number, Value bits) {
  return b.bitAnd(number, b.sub(b.shiftLeft(b.i32(1), bits), b.i32(1)));
}

} // namespace

MergeLanes::MergeLanes(CacheOpEmitter &b, Value laneDivision, Value rowChunks, Type partial) {
  auto part = [&](unsigned byte) {
    return b.bitAnd(b.shiftRight(laneDivision, b.i32(8 * byte)), b.i32(255));
  };
  Value thread = ROCDL::ThreadIdXOp::create(b, b.getI32Type());
  Value place = part(2);
  lanesLog2 = part(0);
  slotsLog2 = part(1);
  lane = b.bitAnd(thread, b.i32(waveLanes - 1));
  slots = b.shiftLeft(b.i32(1), slotsLog2);
  slot = lowBits(b, b.shiftRight(thread, place), slotsLog2);
  Value above = b.shiftRight(thread, b.add(place, slotsLog2));
  Value unit = b.bitOr(lowBits(b, thread, place), b.shiftLeft(above, place));
  // In rows whose width is a multiple of four chunks, the first runs of four lanes are contiguous, and so are
  // the second ones: memory takes as long for a piece of 64 bytes however little of it a load uses.
  Value fours = b.equal(b.bitAnd(rowChunks, b.i32(3)), b.i32(0));
  runsLog2 = partial.isF32() ? b.select(fours, b.i32(2), b.i32(0)) : b.i32(0);
  toSecondRun = b.shiftLeft(b.i32(runElements), runsLog2);
  firstChunk = lowBits(b, unit, lanesLog2);
  rowOfGroup = b.shiftRight(unit, lanesLog2);
  rowsLog2 = part(3);
}

Value MergeLanes::firstElement(CacheOpEmitter &b, Value chunk) const {
  Value chunksBefore = b.shiftLeft(b.shiftRight(chunk, runsLog2), runsLog2);
  Value runsBefore = lowBits(b, chunk, runsLog2);
  return b.add(b.mul(chunksBefore, b.i32(2 * runElements)), b.mul(runsBefore, b.i32(runElements)));
}

SmallVector<Value> MergeLanes::join(CacheOpEmitter &b, ValueRange values, Join join, unsigned step) const {
  if (step == package::merge_most_slots_log2) return SmallVector<Value>(values);
  return b.branch(
      b.less(b.i32(step), b.opaqueScalar(slotsLog2)),
      [&] {
        SmallVector<Value> joined;
        for (Value value : values)
          joined.push_back(fromOtherSlot(b, value, step));
        for (auto [value, other] : llvm::zip_equal(joined, values))
          value = join(value, other);
        return this->join(b, joined, join, step + 1);
      },
      [&] { return SmallVector<Value>(values); });
}

/// The value of the lane whose number differs in bit 3, 2, 4 or 5. Once the first step has equalised lanes
/// that differ in bit 3, rotating by 4 gives the same value as changing bit 2.
Value MergeLanes::fromOtherSlot(CacheOpEmitter &b, Value value, unsigned step) const {
  if (step < 2) return b.rotateRow(value, step == 0 ? 8 : 4);
  return b.fromLane(value, lane, 4u << step);
}

} // namespace sluice
