//===- RowGroups.cpp - the groups of a row that an append_step appends ----------------------------------===//
#include "cache_ops/RowGroups.h"

#include "cache_ops/IntegerChunks.h"

using namespace mlir;

namespace sluice {

RowGroups findGroups(const WorkgroupSection &section, const LaneChunks &lane) {
  CacheOpEmitter &b = section.b;
  RowGroups groups;
  Value half = section.rotary_half(), lanes = section.lane_chunks();
  groups.regroups =
      b.both(section.hasMode(package::step_regroups), b.both(b.isFalse(section.isQ), b.less(b.i32(0), half)));
  Value none = b.i32(-1);
  for (auto [i, number, chunk] : llvm::enumerate(groups.numbers, lane.chunks)) {
    Value regrouped = b.select(lane.hasAny, b.add(lane.lane, b.mul(lanes, b.i32(i))), none);
    number = b.select(groups.regroups, regrouped, b.select(chunk.exists, chunk.number, none));
  }
  return groups;
}

/// Whether the number is a chunk's. Asked again where it is needed: there are not enough scalar registers for
/// all conditions of lanes.
static Value isChunk(const WorkgroupSection &section, Value number) {
  return section.b.lessUnsigned(number, section.b.opaqueScalar(section.chunks()));
}

namespace {

/// Which lane of the row has computed a chunk, and whether it is the lane's second one.
struct Computed {
  Value lane, isSecond;
};

} // namespace

/// The inverse of findChunks.
static Computed findLane(CacheOpEmitter &b, Value number, Value first, Value half, Value others) {
  Value rotated = b.sub(number, first);
  Value isLower = b.lessUnsigned(rotated, half), isUpper = b.lessUnsigned(b.sub(rotated, half), half);
  Value other = b.select(b.less(number, first), number, b.sub(number, b.shiftLeft(half, b.i32(1))));
  Value isSecond = b.either(isUpper, b.both(b.isFalse(isLower), b.isFalse(b.less(other, others))));
  Value lane = b.select(
      isLower, rotated,
      b.select(isUpper, b.sub(rotated, half), b.add(half, b.select(isSecond, b.sub(other, others), other))));
  return {lane, isSecond};
}

ChunkValues regroup(const WorkgroupSection &section, const LaneChunks &lane, const RowGroups &groups,
                    const ChunkValues &wide) {
  CacheOpEmitter &b = section.b;
  Value half = section.rotary_half(), first = section.call.rotary_first(), lanes = section.lane_chunks();
  Value wave = b.bitAnd(ROCDL::ThreadIdXOp::create(b, b.getI32Type()), b.i32(63));
  Value firstOfRow = b.shiftLeft(b.shiftRight(wave, lane.rowLanesLog2), lane.rowLanesLog2);
  Value others = b.sub(lanes, half);
  ChunkValues result;
  for (auto [to, stored] : llvm::zip_equal(result, groups.numbers)) {
    // After the row's numbers: not before the loop over rows, from which conditions would stay in registers.
    Value number = b.after(stored, b.extract(wide[0], 0));
    Computed computed = findLane(b, number, first, half, others);
    Value from = b.add(firstOfRow, b.select(isChunk(section, number), computed.lane, b.i32(0)));
    SmallVector<Value> elements;
    for (unsigned i = 0; i < chunkElements; ++i) {
      Value inFirst = b.laneValue(b.extract(wide[0], i), from);
      Value inSecond = b.laneValue(b.extract(wide[1], i), from);
      elements.push_back(b.select(computed.isSecond, inSecond, inFirst));
    }
    to = b.pack(b.chunkOf(b.getF32Type()), elements);
  }
  return result;
}

/// In a block of ggml: an F16 scale, then the integers of four chunks, which the first `storing` of their
/// four lanes store, eight bytes each.
static void storeInBlock(const WorkgroupSection &section, Value number, Value begin, int32_t storing,
                         function_ref<GroupedChunk(Value place)> convert) {
  CacheOpEmitter &b = section.b;
  constexpr int32_t scaleBytes = 2, chunkBytes = chunkElements, blockChunks = 4;
  Value place = b.bitAnd(number, b.i32(blockChunks - 1));
  Value block = b.shiftRight(number, b.i32(llvm::Log2_32(blockChunks)));
  GroupedChunk made = convert(place);
  Value first = b.add(begin, b.zeroExtend(b.mul(block, b.i32(scaleBytes + storing * chunkBytes))));
  auto at = [&](Value offset) { return b.advance(section.out(), b.getI8Type(), b.add(first, offset)); };
  b.when(b.equal(place, b.i32(0)),
         [&] { LLVM::StoreOp::create(b, made.scale, at(b.i64(0)), /*alignment=*/2); });
  auto store = [&] {
    Value offset = b.zeroExtend(b.add(b.mul(place, b.i32(chunkBytes)), b.i32(scaleBytes)));
    LLVM::StoreOp::create(b, made.bytes, at(offset), /*alignment=*/2);
  };
  if (storing == blockChunks)
    store();
  else
    b.when(b.less(place, b.i32(storing)), store);
}

void storeQ8(const WorkgroupSection &section, Value chunk, Value number, const GroupPlace &place) {
  storeInBlock(section, number, place.begin, 4, [&](Value) { return toQ8(section.b, chunk); });
}

// The integers are in halves of bytes.
void storeQ4(const WorkgroupSection &section, Value chunk, Value number, const GroupPlace &place) {
  storeInBlock(section, number, place.begin, 2, [&](Value lane) { return toQ4(section.b, chunk, lane); });
}

void storeU4(const WorkgroupSection &section, Value chunk, Value number, const GroupPlace &place) {
  CacheOpEmitter &b = section.b;
  Value isWide = section.hasMode(package::step_wide_groups), zeros = section.zeros();
  Value hasZero = b.isFalse(b.isNull(zeros));
  GroupedChunk made = toU4(b, chunk, isWide, hasZero);
  constexpr int32_t chunkBytes = chunkElements / 2;
  Value to = b.add(place.begin, b.zeroExtend(b.mul(number, b.i32(chunkBytes))));
  LLVM::StoreOp::create(b, made.bytes, b.advance(section.out(), b.getI8Type(), to),
                        /*alignment=*/chunkBytes);
  Value chunksLog2 = b.select(isWide, b.i32(3), b.i32(2));
  Value group = b.shiftRight(number, chunksLog2);
  b.when(b.equal(b.shiftLeft(group, chunksLog2), number), [&] {
    Value index = b.add(place.firstScale, b.zeroExtend(group));
    b.store(made.scale, section.scale(), index, 2);
    b.when(hasZero, [&] { b.store(made.zero, zeros, index, 2); });
  });
}

void storeGroups(const WorkgroupSection &section, const RowGroups &groups, const ChunkValues &values,
                 const GroupPlace &place, StoreGroupedChunk store) {
  for (auto [value, number] : llvm::zip_equal(values, groups.numbers))
    section.b.when(isChunk(section, number),
                   [&, value = value, number = number] { store(section, value, number, place); });
}

} // namespace sluice
