//===- LaneChunks.cpp - the two chunks of a row that a lane of an append_step has -----------------------===//
#include "cache_ops/LaneChunks.h"

using namespace mlir;

namespace sluice {

LaneChunks findChunks(const WorkgroupSection &section, Value lane, Value rowLanesLog2) {
  CacheOpEmitter &b = section.b;
  LaneChunks result;
  Value half = section.rotary_half(), first = section.call.rotary_first(), lanes = section.lane_chunks();
  Value count = section.chunks(), body = section.body_chunks();
  Value isRotated = b.lessUnsigned(lane, half);
  auto outside = [&](Value n) {
    return b.select(b.less(n, first), n, b.add(n, b.shiftLeft(half, b.i32(1))));
  };
  Value rotated = b.add(first, lane), other = b.sub(lane, half);
  Value numbers[] = {b.select(isRotated, rotated, outside(other)),
                     b.select(isRotated, b.add(rotated, half), outside(b.add(other, b.sub(lanes, half))))};
  result.hasAny = b.lessUnsigned(lane, lanes);
  Value spare = b.i32(0);
  for (auto [chunk, number] : llvm::zip_equal(result.chunks, numbers)) {
    chunk.exists = b.both(result.hasAny, b.lessUnsigned(number, count));
    chunk.number = b.select(chunk.exists, number, spare);
    chunk.isNormed = b.both(chunk.exists, b.lessUnsigned(number, body));
    spare = chunk.number;
  }
  result.rowLanesLog2 = rowLanesLog2;
  result.lane = lane;
  result.isFirst = b.equal(lane, b.i32(0));
  result.isRotated = isRotated;
  result.pairOfFirst = lane;
  result.pairOfSecond = b.add(lane, half);
  return result;
}

ChunkValues loadRow(const WorkgroupSection &section, const LaneChunks &lane, Type source, Value token,
                    Value head) {
  CacheOpEmitter &b = section.b;
  using Stride = Argument<int64_t>;
  auto findRow = [&](const Argument<package::DeviceAddress> &rows, const Stride &tokens,
                     const Stride &heads) {
    return b.advance(rows(), source, b.add(b.mul(token, tokens()), b.mul(head, heads())));
  };
  Value body = findRow(section.rows, section.token_stride, section.head_stride);
  Value tail = findRow(section.tail, section.tail_token_stride, section.tail_head_stride);
  Value bodyChunks = section.body_chunks();
  ChunkValues raw;
  for (auto [value, chunk] : llvm::zip_equal(raw, lane.chunks)) {
    Value isBody = b.lessUnsigned(chunk.number, bodyChunks);
    Value from = b.select(isBody, body, tail);
    Value n = b.select(isBody, chunk.number, b.sub(chunk.number, bodyChunks));
    value = b.load(b.chunkOf(source), from, b.zeroExtend(firstElement(b, n)), 16);
  }
  return raw;
}

ChunkValues widen(CacheOpEmitter &b, const ChunkValues &raw) {
  ChunkValues wide;
  for (auto [to, from] : llvm::zip_equal(wide, raw))
    to = b.extend(b.chunkOf(b.getF32Type()), from);
  return wide;
}

Value loadWide(CacheOpEmitter &b, Type type, unsigned count, Value pointer, Value index) {
  Value values = b.load(VectorType::get(count, type), pointer, index, type.getIntOrFloatBitWidth() / 8);
  return type.isF32() ? values : b.extend(VectorType::get(count, b.getF32Type()), values);
}

Value product(CacheOpEmitter &b, Value chunk, Value factor, Value weights) {
  SmallVector<Value> products;
  for (unsigned i = 0; i < chunkElements; ++i) {
    Value weight = weights ? b.extract(weights, i) : Value();
    Value scaled = b.mulF(b.extract(chunk, i), factor);
    products.push_back(weight ? b.mulF(scaled, weight) : scaled);
  }
  return b.pack(b.chunkOf(b.getF32Type()), products);
}

} // namespace sluice
