//===- Builders.h - what the builders of attention kernels share ------------------------------*- C++ -*-===//
#pragma once

#include "attention/Arguments.h"
#include "target/Chips.h"

namespace sluice {

/// Copies of the rows of K and V of one head into tiles in LDS, contiguous or through the page table.
class KeyCopies {
public:
  using Value = mlir::Value;

  /// Rows at or past `keyLimit` become zeros, and are not read.
  KeyCopies(Emitter &b, const Arguments &arguments, const Sequence &sequence, AttentionOp op, Value keyLimit);

  /// The token of a copy of the tile's rows from `firstKey` on. `side` is "k" or "v", `base` row 0 of the
  /// head: of the sequence, or with pages of page 0. Columns at or past `columnLimit`, if given, become
  /// zeros.
  Value copy(llvm::StringRef side, Value base, Value firstKey, Value tile, Value columnLimit = {});

private:
  Emitter &b;
  const Arguments &arguments;
  AttentionOp op;
  Value keyLimit, table, widePages;
};

/// Expands a sluice.attention of 16 rows a wave.
void buildPackedAttention(mlir::gpu::GPUFuncOp kernel, AttentionOp op, const Chip &chip);

} // namespace sluice
