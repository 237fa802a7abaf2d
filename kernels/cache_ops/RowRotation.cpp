//===- RowRotation.cpp - the rotation of a row that an append_step appends ------------------------------===//
#include "cache_ops/RowRotation.h"

using namespace mlir;

namespace sluice {

namespace {

constexpr unsigned chunkPairs = chunkElements / 2;
// sluice_dtype of the rotary tables.
constexpr int32_t tableF16 = 1, tableBf16 = 2;

/// The angles for the chunks in rows `row` elements from the start of the tables, whose elements are `type`.
CacheOpEmitter::Two loadAnglesAs(const WorkgroupSection &section, Type type, const LaneChunks &lane,
                                 Value row, Value isPairs) {
  CacheOpEmitter &b = section.b;
  auto load = [&](Value table) -> Value {
    // Halves: the second four follow the first.
    auto at = [&](Value element) { return b.add(row, b.zeroExtend(element)); };
    Value first = b.mul(lane.pairOfFirst, b.select(isPairs, b.i32(chunkPairs), b.i32(chunkElements)));
    Value second =
        b.select(isPairs, b.mul(lane.pairOfSecond, b.i32(chunkPairs)), b.add(first, b.i32(chunkPairs)));
    Value secondFour = loadWide(b, type, chunkPairs, table, at(second));
    Value firstFour = loadWide(b, type, chunkPairs, table, at(first));
    return vector::ShuffleOp::create(b, firstFour, secondFour,
                                     llvm::to_vector(llvm::seq<int64_t>(0, chunkElements)));
  };
  Value cosines = load(section.call.rotary());
  return {cosines, load(section.call.rotary_sin())};
}

struct Pair {
  Value x, y;
};
Pair turn(CacheOpEmitter &b, Pair pair, const Angles &angles, unsigned number) {
  Value sine = b.extract(angles.sines, number), cosine = b.extract(angles.cosines, number);
  Value x = b.fma(b.negF(pair.y), sine, b.mulF(pair.x, cosine));
  Value y = b.fma(pair.x, sine, b.mulF(pair.y, cosine));
  return {x, y};
}

ChunkValues rotatePairs(CacheOpEmitter &b, const ChunkValues &wide, const Angles &angles) {
  ChunkValues turned;
  for (auto [n, chunk] : llvm::enumerate(wide)) {
    SmallVector<Value> elements;
    for (unsigned i = 0; i < chunkPairs; ++i) {
      Value x = b.extract(chunk, 2 * i), y = b.extract(chunk, 2 * i + 1);
      Pair pair = turn(b, {x, y}, angles, n * chunkPairs + i);
      elements.append({pair.x, pair.y});
    }
    turned[n] = b.pack(b.chunkOf(b.getF32Type()), elements);
  }
  return turned;
}

ChunkValues rotateHalves(CacheOpEmitter &b, const ChunkValues &wide, const Angles &angles) {
  SmallVector<Value> first, second;
  for (unsigned i = 0; i < chunkElements; ++i) {
    Value x = b.extract(wide[0], i), y = b.extract(wide[1], i);
    Pair pair = turn(b, {x, y}, angles, i);
    first.push_back(pair.x);
    second.push_back(pair.y);
  }
  VectorType type = b.chunkOf(b.getF32Type());
  return {b.pack(type, first), b.pack(type, second)};
}

} // namespace

Angles loadAngles(const WorkgroupSection &section, const LaneChunks &lane, Value position) {
  CacheOpEmitter &b = section.b;
  Value type = section.call.rotary_type(), isPairs = section.hasMode(package::step_rotary_pairs);
  Value row = b.mul(position, section.call.rotary_stride());
  auto loadAs = [&](Type type) { return loadAnglesAs(section, type, lane, row, isPairs); };
  auto [cosines, sines] = b.branch(
      lane.isRotated,
      [&] {
        return b.branch(
            b.equal(type, b.i32(tableF16)), [&] { return loadAs(b.getF16Type()); },
            [&] {
              return b.branch(
                  b.equal(type, b.i32(tableBf16)), [&] { return loadAs(b.getBF16Type()); },
                  [&] { return loadAs(b.getF32Type()); });
            });
      },
      [&] {
        Value none = b.undef(b.chunkOf(b.getF32Type()));
        return CacheOpEmitter::Two{none, none};
      });
  return {cosines, sines};
}

ChunkValues rotate(const WorkgroupSection &section, const ChunkValues &wide, const Angles &angles) {
  CacheOpEmitter &b = section.b;
  return b.branch(
      section.hasMode(package::step_rotary_pairs), [&] { return rotatePairs(b, wide, angles); },
      [&] { return rotateHalves(b, wide, angles); });
}

} // namespace sluice
