//===- Addresses.h - where the rows of Q, K, V, O and LSE are in memory -----------------------*- C++ -*-===//
#pragma once

#include "attention/RowMap.h"

namespace sluice {

class Addresses {
public:
  using Value = mlir::Value;

  Addresses(Emitter &b, const Arguments &arguments, const LaneRows &rows)
      : b(b), arguments(arguments), rows(rows) {}

  /// Row 0 of k or v of the workgroup's KV head: of the sequence, or of page 0 where there is a page table,
  /// for which `mayBeInPages` says whether to ask.
  Value ofKeys(llvm::StringRef side, mlir::Type type, bool mayBeInPages) const;
  /// The place of this lane's token and query head in q, o or lse, in elements. `firstRow` is that of the
  /// sequence.
  Value offsetOfRow(llvm::StringRef tensor, Value firstRow) const;
  /// What the split of the keys adds to it, in o or lse.
  Value offsetOfSplit(llvm::StringRef tensor) const;

private:
  Value strideProduct(Value count, llvm::StringRef stride) const;

  Emitter &b;
  const Arguments &arguments;
  const LaneRows &rows;
};

} // namespace sluice
