//===- Query.h - Q^T of a block of rows -------------------------------------------------------*- C++ -*-===//
//
// Every tile of keys is multiplied by all of Q^T, so it is in registers. If rows are too long to fit, a part
// is parked in LDS: each lane writes its part once and reads it back for each tile. No other lane reads it.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "attention/HeadColumns.h"
#include "attention/TileMath.h"

namespace sluice {

class Query {
public:
  using Value = mlir::Value;
  using Values = llvm::SmallVector<Value>;

  /// A row of Q in the order of `reads`. `base` is the lane's row, of elements `inMemory`. Columns at or past
  /// `limit`, a multiple of 8, are zeros and are not read. `unused`: see cutRest.
  Query(Emitter &b, TileMath &math, llvm::ArrayRef<ColumnRead> reads, Value base, mlir::Type inMemory,
        mlir::Type element, Value laneGroup, Value limit, Value unused);

  /// The last `unused` columns before the limit, fewer than 8, become zeros, whatever memory has there. A
  /// null `unused` is 0. Otherwise this waits for the row, so it comes after the first loads of K.
  void cutRest();

  /// Parks the columns of the last `reads` reads. `thread`: of the workgroup, which has `threads`.
  void park(unsigned reads, Value thread, unsigned threads);

  /// The B fragments of the columns of a read. Parked ones are read here.
  Values fragments(unsigned read) const;

private:
  Emitter &b;
  TileMath &math;
  llvm::SmallVector<ColumnRead> reads;
  Value limit, unused;
  Values columns, firstColumns; // of each read that is not parked
  Value tile, thread;           // for the parked ones
  unsigned threads = 0;
};

} // namespace sluice
