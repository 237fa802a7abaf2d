//===- Addresses.h - addresses of the rows of Q, K, V, O and LSE ------------------------------*- C++ -*-===//
#pragma once

#include "attention/RowMap.h"

namespace sluice {

class Addresses {
public:
  using Value = mlir::Value;

  Addresses(Emitter &b, const Arguments &arguments, const LaneRows &rows)
      : b(b), arguments(arguments), rows(rows) {}

  /// Row 0 of k or v of the workgroup's KV head: of the sequence, or of page 0 if there is a page table,
  /// which is only checked if `mayBeInPages`.
  Value sideBase(llvm::StringRef side, mlir::Type type, bool mayBeInPages) const {
    return sideBase(side, side, type, mayBeInPages);
  }
  /// The same with the strides of another array.
  Value sideBase(llvm::StringRef array, llvm::StringRef side, mlir::Type type, bool mayBeInPages) const;
  /// The offset of this lane's token and query head in q, o or lse, in elements. `firstRow` is the sequence's
  /// first row.
  Value offsetOfRow(llvm::StringRef tensor, Value firstRow) const;
  /// The split's contribution to that offset, in o or lse.
  Value offsetOfSplit(llvm::StringRef tensor) const;

private:
  Value strideProduct(Value count, llvm::StringRef stride) const;

  Emitter &b;
  const Arguments &arguments;
  const LaneRows &rows;
};

} // namespace sluice
