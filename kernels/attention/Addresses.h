//===- Addresses.h - where the rows of Q, K, V, O and LSE are in memory -----------------------*- C++ -*-===//
#pragma once

#include "attention/RowMap.h"

namespace sluice {

class Addresses {
public:
  using Value = mlir::Value;

  Addresses(Emitter &b, const Arguments &arguments, const LaneRows &rows)
      : b(b), arguments(arguments), rows(rows) {}

  /// When kernel arguments are loaded: on entry, or where they are used (Arguments::late).
  enum class Load { onEntry, late };

  /// Row 0 of the sequence, of a tensor's head: q, o and lse with the workgroup's query head.
  Value ofQueryHead(llvm::StringRef tensor, mlir::Type type, Load load) const;
  /// The same of k and v with the workgroup's KV head; `inPages`: of page 0.
  Value ofKeyHead(llvm::StringRef side, mlir::Type type, bool inPages) const;

  /// Row 0 of k or v of the workgroup's KV head: of the sequence, or where there is a page table of page 0.
  Value ofKeys(llvm::StringRef side, mlir::Type type) const;
  /// The place of this lane's token and query head in q, o or lse, in elements. `firstRow` is that of the
  /// sequence.
  Value offsetOfRow(llvm::StringRef tensor, Value firstRow) const;
  /// What the part of the keys adds to it, in o or lse.
  Value offsetOfPart(llvm::StringRef tensor) const;

private:
  Value ofHead(llvm::StringRef tensor, Value head, Value firstRow, mlir::Type type, Load load,
               bool inPages) const;
  Value strideProduct(Value count, llvm::StringRef stride) const;

  Emitter &b;
  const Arguments &arguments;
  const LaneRows &rows;
};

} // namespace sluice
