//===- RowScale.cpp - the scale by which an append_step divides a row -----------------------------------===//
#include "cache_ops/RowScale.h"

#include <limits>

using namespace mlir;

namespace sluice {

static Value isFrom(const WorkgroupSection &section, package::ScaleSource source) {
  CacheOpEmitter &b = section.b;
  return b.equal(section.scale_source(), b.i32(int32_t(source)));
}

Value findScale(const WorkgroupSection &section, const AppendPlace &place, Value head) {
  CacheOpEmitter &b = section.b;
  return b.add(
      b.add(b.mul(place.page, section.scale_page_stride()), b.mul(place.row, section.scale_row_stride())),
      b.mul(head, section.scale_head_stride()));
}

static Value findAddress(const WorkgroupSection &section, const AppendPlace &place, Value head) {
  CacheOpEmitter &b = section.b;
  return b.advance(section.scale(), b.getF32Type(), findScale(section, place, head));
}

Value loadHeadScale(const WorkgroupSection &section, Value head) {
  CacheOpEmitter &b = section.b;
  Value isGiven = b.both(b.isFalse(b.isNull(section.scale())), isFrom(section, package::ScaleSource::head));
  return b.branch(
      isGiven,
      [&] {
        Value index = b.mul(head, section.scale_head_stride());
        return b.load(b.getF32Type(), section.scale(), index, 4);
      },
      [&] { return b.f32(1); });
}

Value loadPageScale(const WorkgroupSection &section, const AppendPlace &place, Value head, Value headScale) {
  CacheOpEmitter &b = section.b;
  return b.branch(
      isFrom(section, package::ScaleSource::page),
      [&] { return b.load(b.getF32Type(), findAddress(section, place, head), b.i64(0), 4); },
      [&] { return headScale; });
}

/// The size of the row's largest finite number.
static Value findLargest(CacheOpEmitter &b, const LaneChunks &lane, const ChunkValues &wide) {
  constexpr float mostFinite = std::numeric_limits<float>::max();
  Value most = b.f32(0);
  for (auto [values, chunk] : llvm::zip_equal(wide, lane.chunks)) {
    Value own = b.f32(0);
    for (unsigned i = 0; i < chunkElements; ++i) {
      Value size = math::AbsFOp::create(b, b.extract(values, i));
      Value isFinite = b.atMostF(size, b.f32(mostFinite)); // false for NaN
      own = b.maxF(own, b.select(isFinite, size, b.f32(0)));
    }
    most = b.maxF(most, b.select(chunk.exists, own, b.f32(0)));
  }
  return b.joinLanes(most, lane.rowLanesLog2, [&](Value x, Value y) { return b.maxF(x, y); });
}

Value computeRowScale(const WorkgroupSection &section, const LaneChunks &lane, const ChunkValues &wide,
                      double largest, const AppendPlace &place, Value head, Value given) {
  CacheOpEmitter &b = section.b;
  auto compute = [&] {
    Value address = findAddress(section, place, head);
    Value most = findLargest(b, lane, wide);
    Value quotient = arith::DivFOp::create(b, most, b.f32(largest));
    Value scale = b.select(b.equalF(quotient, b.f32(0)), b.f32(1), quotient);
    b.when(lane.isFirst, [&] { b.store(scale, address, b.i64(0), 4); });
    return scale;
  };
  return b.branch(isFrom(section, package::ScaleSource::computed), compute, [&] { return given; });
}

} // namespace sluice
