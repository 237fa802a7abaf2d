//===- RowNorm.cpp - the norm of a row that an append_step appends --------------------------------------===//
#include "cache_ops/RowNorm.h"

using namespace mlir;

namespace sluice {

namespace {

/// In all lanes of the row.
Value sumSquares(CacheOpEmitter &b, const LaneChunks &lane, const ChunkValues &wide) {
  Value sum = b.f32(0);
  for (auto [values, chunk] : llvm::zip_equal(wide, lane.chunks)) {
    Value own = b.f32(0);
    for (unsigned i = 0; i < chunkElements; ++i) {
      Value value = b.extract(values, i);
      own = b.fma(value, value, own);
    }
    sum = b.addF(sum, b.select(chunk.isNormed, own, b.f32(0)));
  }
  return b.joinLanes(sum, lane.rowLanesLog2, [&](Value x, Value y) { return b.addF(x, y); });
}

/// A row and the factor of its norm.
struct Normed {
  ChunkValues wide;
  Value factor;
};

/// A row and the mean of its squares.
struct Squared {
  ChunkValues wide;
  Value mean;
  static auto members(auto &of) { return std::tie(of.wide, of.mean); }
};

/// The squares of tiny rows lose bits or vanish, and the chip's root of a subnormal number is 0: such rows
/// are made larger before.
Normed findFactor(const WorkgroupSection &section, const LaneChunks &lane, const ChunkValues &wide) {
  constexpr double least = 0x1p-90, lift = 0x1p100; // times the least number of BF16, 2^-133, is 2^-33
  CacheOpEmitter &b = section.b;
  Value epsilon = section.call.norm_epsilon();
  Value mean = b.fma(sumSquares(b, lane, wide), section.row_inverse(), epsilon);
  Value isTiny = b.compareF(arith::CmpFPredicate::OLT, mean, b.f32(least));
  Squared lifted = b.rarely(
      b.anyLane(isTiny),
      [&] {
        Value factor = b.select(isTiny, b.f32(lift), b.f32(1));
        ChunkValues larger;
        for (auto [to, values, chunk] : llvm::zip_equal(larger, wide, lane.chunks))
          to = b.select(chunk.isNormed, product(b, values, factor), values);
        Value largerEpsilon = b.mulF(b.mulF(epsilon, factor), factor);
        Value largerMean = b.fma(sumSquares(b, lane, larger), section.row_inverse(), largerEpsilon);
        return Squared{larger, largerMean};
      },
      [&] { return Squared{wide, mean}; });
  return {lifted.wide, b.reciprocalRoot(lifted.mean)};
}

} // namespace

ChunkValues normalize(const WorkgroupSection &section, const LaneChunks &lane, Type source,
                      const ChunkValues &wide, Value weights) {
  CacheOpEmitter &b = section.b;
  auto loadWeights = [&](Value chunk) {
    Value index = b.zeroExtend(firstElement(b, chunk));
    auto loadAs = [&](Type type) { return loadWide(b, type, chunkElements, weights, index); };
    return b.branch(
        section.hasMode(package::step_norm_is_f32), [&] { return loadAs(b.getF32Type()); },
        [&] { return loadAs(source); });
  };
  Normed normed = findFactor(section, lane, wide);
  ChunkValues result;
  for (auto [to, values, chunk] : llvm::zip_equal(result, normed.wide, lane.chunks))
    to = b.branch(
        chunk.isNormed,
        [&, values = values, chunk = chunk] {
          return product(b, values, normed.factor, loadWeights(chunk.number));
        },
        [values = values] { return values; });
  return result;
}

} // namespace sluice
