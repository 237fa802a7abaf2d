//===- KeyPages.h - the page table of K and V, for the keys of a workgroup --------------------*- C++ -*-===//
#pragma once

#include "attention/RowMap.h"

namespace sluice {

class KeyPages {
public:
  using Value = mlir::Value;

  /// Without a page table, one page holds everything. Keys outside the range and in its hole are not looked
  /// up; but if V is by columns, those in the hole are if a wave reads them with a key that is not: it reads
  /// `keysTogether`, a power of two that divides pages. Every reference must outlive this.
  KeyPages(Emitter &b, const Arguments &arguments, const WorkgroupRows &rows, const KeyRange &keys,
           unsigned keysTogether = 1);

  /// The table's entries for the keys from `firstKey` on, one key per lane. K and V share them.
  Value lookUp(Value firstKey) const;

  /// The addresses of the rows of k or v, one key from `firstKey` on per lane, from their entries. `base` is
  /// row 0 of page 0. Rows that were not looked up are replaced by zeros. `packLog2`: rows per pack; null
  /// without packs.
  Value addresses(llvm::StringRef side, Value base, Value firstKey, Value entries, mlir::Type stored,
                  unsigned rowBytes, Value packLog2 = {}) const;
  /// The same for an array whose strides are loaded where they are used.
  Value lateAddresses(llvm::StringRef array, Value base, Value firstKey, Value entries, mlir::Type stored,
                      unsigned rowBytes) const;

  /// A bit for each of these keys, wave-uniform: 0 if it is hidden, because its entry is not a page.
  Value found(Value entries) const;

  /// Turns a copy of rows of k or v into a gather with the given entries.
  void gather(AsyncDmaOp copy, llvm::StringRef side, Value entries) const;

private:
  struct Strides {
    Value row, page;
  };
  Value addresses(const Strides &strides, Value base, Value firstKey, Value entries, mlir::Type stored,
                  unsigned rowBytes, Value packLog2) const;

  Emitter &b;
  const Arguments &arguments;
  const KeyRange &keys;
  Value table, wide, pages, hidesNone;
};

/// The beginning of a column of a row of K, in elements from the row's start: columns are in packs, or one
/// pack holds them all.
mlir::Value packedColumn(Emitter &b, const Arguments &arguments, mlir::Value column);

} // namespace sluice
