//===- MergeLanes.h - the lanes of a merge's workgroup and what each of them does -------------*- C++ -*-===//
#pragma once

#include "cache_ops/CacheOpEmitter.h"

namespace sluice {

/// Which chunk, part and row of those that the workgroup has at a time are the lane's.
class MergeLanes {
  using Value = mlir::Value;

public:
  /// A chunk of F32 is two runs of 16 bytes.
  static constexpr unsigned runElements = package::cache_op_chunk_elements / 2;

  MergeLanes() = default;
  MergeLanes(CacheOpEmitter &b, Value laneDivision, Value rowChunks, mlir::Type partial);

  /// Of a row, where the first run of the chunk begins.
  Value firstElement(CacheOpEmitter &b, Value chunk) const;

  /// Joins the slots' values: all slots get the same result. More slots than there are parts join the same
  /// pairs, and some with 0.
  using Join = llvm::function_ref<Value(Value, Value)>;
  llvm::SmallVector<Value> join(CacheOpEmitter &b, mlir::ValueRange values, Join join,
                                unsigned step = 0) const;

  Value lanesLog2, slotsLog2, rowsLog2; // as lane_division has them
  Value slots, slot;                    // of a row, and which of them the lane is in
  Value firstChunk, rowOfGroup;         // of the lane
  Value toSecondRun;                    // of a chunk, from its first

private:
  Value fromOtherSlot(CacheOpEmitter &b, Value value, unsigned step) const;

  Value lane; // of the wave
  Value runsLog2;
};

} // namespace sluice
