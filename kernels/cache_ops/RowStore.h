//===- RowStore.h - storing a row that an append_step appends, chunk by chunk -----------------*- C++ -*-===//
#pragma once

#include "cache_ops/LaneChunks.h"

namespace sluice {

/// Whether V's cache is by columns, each element of a row in a column of its own. Null: no cache of the
/// kernel's type is.
struct Columns {
  mlir::Value are;
};

/// Where a row begins in its page. By columns, rows are neighbours in their pack.
mlir::Value findRow(const WorkgroupSection &section, mlir::Value row, const Columns &columns);

/// Converts each chunk with `convert` and stores it, as elements of the type, one chunk after another: few
/// registers are in use at a time. `begin`: of the row, in elements.
void storeRow(const WorkgroupSection &section, const LaneChunks &lane, const ChunkValues &values,
              mlir::Value begin, mlir::Type element, llvm::function_ref<mlir::Value(mlir::Value)> convert,
              const Columns &columns = {});

} // namespace sluice
