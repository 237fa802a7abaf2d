//===- MergeLanes.h - the lanes of a merge's workgroup and their work -------------------------*- C++ -*-===//
#pragma once

#include "cache_ops/CacheOpEmitter.h"

namespace sluice {

/// The lane's chunk, part and row, among those that the workgroup handles at a time.
class MergeLanes {
  using Value = mlir::Value;

public:
  /// A chunk of F32 is two runs of 16 bytes.
  static constexpr unsigned runElements = package::cache_op_chunk_elements / 2;

  MergeLanes(CacheOpEmitter &b, Value laneDivision, Value rowChunks, mlir::Type partial);

  /// Where the first run of the chunk begins in a row.
  Value firstElement(CacheOpEmitter &b, Value chunk) const;

  /// Joins the slots' values: all slots get the same result. With more slots than parts the same pairs are
  /// joined, and some are joined with 0.
  using Join = llvm::function_ref<Value(Value, Value)>;
  llvm::SmallVector<Value> join(CacheOpEmitter &b, mlir::ValueRange values, Join join,
                                unsigned step = 0) const;
  Value join(CacheOpEmitter &b, Value value, Join join) const {
    return this->join(b, mlir::ValueRange(value), join)[0];
  }

  Value lanesLog2, slotsLog2, rowsLog2; // see lane_division
  Value slots, slot;                    // the slots of a row, and the lane's slot
  Value firstChunk, rowOfGroup;         // of the lane
  Value toSecondRun;                    // distance of a chunk's second run from its first

private:
  Value fromOtherSlot(CacheOpEmitter &b, Value value, unsigned step) const;

  Value lane; // within the wave
  Value runsLog2;
};

} // namespace sluice
