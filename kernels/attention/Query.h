//===- Query.h - Q^T in registers -------------------------------------------------------------*- C++ -*-===//
#pragma once

#include "attention/HeadColumns.h"
#include "attention/TileMath.h"

namespace sluice {

/// A row of Q as B fragments, in the order of `reads`. `base` is the lane's row, of elements `inMemory`.
/// Columns at or past `limit`, if given, are zeros and are not read.
TileMath::Values loadQuery(Emitter &b, TileMath &math, llvm::ArrayRef<ColumnRead> reads, mlir::Value base,
                           mlir::Type inMemory, mlir::Type element, mlir::Value laneGroup,
                           mlir::Value limit = {});

} // namespace sluice
