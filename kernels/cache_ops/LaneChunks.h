//===- LaneChunks.h - the two chunks of a row that a lane of an append_step has ---------------*- C++ -*-===//
//
// The lanes of a row are a power of two, at most a wave, and each has up to two chunks of 8 elements in
// registers: the two that a rotation of halves combines, or two of the others. Neighbouring lanes have
// neighbouring chunks.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "cache_ops/WorkgroupSection.h"

namespace sluice {

/// A chunk of the lane's. A lane without one has another lane's number here, whose memory it may read.
struct LaneChunk {
  mlir::Value number, exists;
  mlir::Value isNormed; // it exists and is not of the tail
};

struct LaneChunks {
  mlir::Value rowLanesLog2;
  mlir::Value lane, isFirst; // of the row
  mlir::Value hasAny;
  std::array<LaneChunk, package::step_chunks_of_lane> chunks;
  mlir::Value isRotated, pairOfFirst, pairOfSecond; // the chunks' numbers among the rotated ones
};
/// `lane`: its number in the row, which has 2^rowLanesLog2 lanes.
LaneChunks findChunks(const WorkgroupSection &section, mlir::Value lane, mlir::Value rowLanesLog2);

/// The elements of both chunks.
using ChunkValues = CacheOpEmitter::Two;
static_assert(std::tuple_size_v<ChunkValues> == package::step_chunks_of_lane);

/// The lane's elements of the row of a token and a head, of type `source`.
ChunkValues loadRow(const WorkgroupSection &section, const LaneChunks &lane, mlir::Type source,
                    mlir::Value token, mlir::Value head);

/// The same in F32.
ChunkValues widen(CacheOpEmitter &b, const ChunkValues &raw);

/// `count` numbers of a type as F32.
mlir::Value loadWide(CacheOpEmitter &b, mlir::Type type, unsigned count, mlir::Value pointer,
                     mlir::Value index);

/// The elements of a chunk of F32 times a factor, and times their weights if there are any.
mlir::Value product(CacheOpEmitter &b, mlir::Value chunk, mlir::Value factor, mlir::Value weights = {});

inline mlir::Value firstElement(CacheOpEmitter &b, mlir::Value chunk) {
  return b.mul(chunk, b.i32(chunkElements));
}

} // namespace sluice
