//===- KeyRegisters.h - K and V in the registers of a wave ------------------------------------*- C++ -*-===//
//
// Up to 16 bytes per lane and instruction go into the registers of the products. For K the lanes of a group
// read neighbouring columns of one key each, for V neighbouring columns of one key together.
// If V is by columns in memory, a lane reads the keys of a fragment from one of its columns, as one value,
// which needs no transposition. Only the first of these keys is looked up in the page table: the others
// are in the same pack. They may be past the last key, or hidden from all rows; their numbers then are
// whatever is in memory, and their weights are 0 (NonFinite.h).
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "attention/HeadColumns.h"
#include "attention/KeyPages.h"
#include "attention/OwnTiles.h"

namespace sluice {

class KeyRegisters : public OwnTiles {
public:
  /// Row 0 of page 0 of k and v, and the columns that the tensors have.
  struct Source {
    Value k, v, columnsQk, columnsV;
  };
  /// Every reference must outlive this. `stored`: the type in memory; `widened` as in KeyStorage.
  KeyRegisters(Emitter &b, TileMath &math, const Arguments &arguments, const KeyPages &pages,
               const LaneRows &rows, const HeadColumns &columns, const Source &source, mlir::Type stored,
               mlir::Type widened, unsigned tileKv, bool vByColumns);

  LoadedKeys loadKeys(Value firstKey, Value entries) const override;
  LoadedValues loadValues(Value firstKey, Value entries, llvm::ArrayRef<Value> forValues) const override;
  void prepare(const Query &query) override { preparedQuery = &query; }
  Values scores(const TileProducts &products, Value tileKey, llvm::ArrayRef<Value> k) const override;
  Values addValues(const TileProducts &products, const Product &product,
                   const LoadedValues &loaded) const override;

private:
  /// A loaded value as elements of the arithmetic.
  Value asElements(Value loaded, unsigned columns) const;
  /// Reads again from memory: neighbouring elements of row number `key` of the tile's V, from `column` of the
  /// head on; or, if V is by columns, of that column from the key on.
  Value readValues(Value addresses, unsigned count, Value tileKey, Value key, Value column) const;
  /// Zeros in place of tokens past the sequence's last, which are read with those before them.
  Value withoutRest(Value loaded, Value firstKey) const;
  Values withoutRest(llvm::ArrayRef<Value> loaded, Value tileKey) const;
  Value load(Value address, unsigned columns) const;
  /// The addresses of the tile's rows of V, one row per lane; then their contents.
  Value addressesOfValues(Value firstKey, Value entries) const;
  Values loadRows(Value firstKey, Value addresses) const;
  Values loadColumns(Value firstKey, Value addresses) const;
  /// Where a column of the head begins in a pack of V, in elements.
  Value offsetOfColumn(Value column, Value stride) const;
  Value zeros(unsigned columns) const;

  Emitter &b;
  TileMath &math;
  const Arguments &arguments;
  const KeyPages &pages;
  const LaneRows &rows;
  const HeadColumns &columns;
  Source source;
  const Query *preparedQuery = nullptr;
  mlir::Type stored;
  mlir::Type widened;
  bool vByColumns;
  unsigned tileKv, rowBytesQk, rowBytesV;
};

} // namespace sluice
