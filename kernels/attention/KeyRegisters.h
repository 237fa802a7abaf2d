//===- KeyRegisters.h - K and V in the registers of a wave ------------------------------------*- C++ -*-===//
//
// A wave that has tiles of keys for itself reads them from memory straight into the registers of the
// products, up to 16 bytes per lane and instruction: no LDS, and nothing to wait for but its own loads. For K
// the lanes of a group read neighbouring columns of one key each, for V neighbouring columns of one key
// together.
//
// Loads come in the order in which TileProducts asks for what they load, and the values are carried from one
// tile of the loop to the next as they are in memory.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "attention/HeadColumns.h"
#include "attention/KeyPages.h"
#include "attention/TileMath.h"

namespace sluice {

class KeyRegisters {
public:
  using Value = mlir::Value;
  using Values = llvm::SmallVector<Value>;

  /// Row 0 of page 0 of k and v, and the columns that the tensors have.
  struct Source {
    Value k, v, columnsQk, columnsV;
  };
  /// Everything has to outlive this. `stored`: the type in memory; `isWidened` as in KeyStorage.
  KeyRegisters(Emitter &b, TileMath &math, const Arguments &arguments, const KeyPages &pages,
               const LaneRows &rows, const HeadColumns &columns, const Source &source, mlir::Type stored,
               bool isWidened, unsigned tileKv);

  /// The tile from `firstKey` on, with the entries of its keys.
  Values loadKeys(Value firstKey, Value entries) const;
  /// Where the tile's rows of V are, a row per lane; then what they hold.
  Value addressesOfValues(Value firstKey, Value entries) const;
  Values loadValues(Value firstKey, Value addresses) const;

  /// What a load gave, as elements of the arithmetic.
  Value asElements(Value loaded, unsigned columns) const;
  /// Neighbouring elements of a row of V, whose number in the tile is `key`, from `column` of the head on:
  /// read again from memory.
  Value readValues(Value addresses, unsigned columns, Value key, Value column) const;

private:
  Value load(Value address, unsigned columns) const;
  Value zeros(unsigned columns) const;

  Emitter &b;
  TileMath &math;
  const Arguments &arguments;
  const KeyPages &pages;
  const LaneRows &rows;
  const HeadColumns &columns;
  Source source;
  mlir::Type stored;
  bool isWidened;
  unsigned tileKv, rowBytesQk, rowBytesV;
};

} // namespace sluice
