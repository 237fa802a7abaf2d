//===- KeyRegisters.h - K and V in the registers of a wave ------------------------------------*- C++ -*-===//
//
// A wave that has tiles of keys for itself reads them from memory straight into the registers of the
// products, up to 16 bytes per lane and instruction: without LDS, waiting only for its own loads. For K the
// lanes of a group read neighbouring columns of one key each, for V neighbouring columns of one key together.
// If V is by columns in memory, a lane reads the keys of a fragment from one of its columns, as one value,
// which needs no transposition. Of these keys, only the first is looked up in the page table: the others are
// in the same pack. They may be past the last key, or hidden from all rows; their numbers then are whatever
// is in memory, and their weights are 0 (NonFinite.h).
//
// Loads are in the order in which TileProducts asks for their values, and the values are carried from one
// tile of the loop to the next as they are in memory.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "attention/HeadColumns.h"
#include "attention/KeyBlocks.h"
#include "attention/KeyPages.h"
#include "attention/KeyScales.h"
#include "attention/TileMath.h"

namespace sluice {

class KeyRegisters {
public:
  using Value = mlir::Value;
  using Values = llvm::SmallVector<Value>;

  /// Row 0 of page 0 of k and v, and the columns that the tensors have; of u4 also row 0 of the scales, and
  /// the bytes from these to the numbers to subtract (null pointers: there are none).
  struct Source {
    Value k, v, columnsQk, columnsV;
    Value kScales = {}, vScales = {}; // of groups
    Value kKeyScales = {}, vKeyScales = {};
  };
  /// Every reference must outlive this. `stored`: the type in memory; `widened` as in KeyStorage.
  KeyRegisters(Emitter &b, TileMath &math, const Arguments &arguments, const KeyPages &pages,
               const LaneRows &rows, const HeadColumns &columns, const Source &source, mlir::Type stored,
               mlir::Type widened, const KeyBlocks *blocks, unsigned tileKv, bool vByColumns);

  /// Whether a call may have a scale for each key.
  bool mayScaleKeys() const { return source.kKeyScales != nullptr; }
  /// Loads the scales of the keys of the tile from `firstKey` on, with the entries of its keys; they are
  /// undefined if the call has none.
  TileScales loadScalesOfKeys(Value firstKey, Value entries) const;

  /// Loads K of the tile from `firstKey` on, with the entries of its keys.
  Values loadKeys(Value firstKey, Value entries) const;
  /// The addresses of the tile's rows of V, one row per lane; then their contents.
  Value addressesOfValues(Value firstKey, Value entries) const;
  Values loadValues(Value firstKey, Value addresses, Value entries) const;

  /// A loaded value as elements of the arithmetic, from `column` of the head on.
  Value asElements(Value loaded, unsigned columns, Value column) const;
  /// Steps of the second product for which a loaded value of V by columns is enough; 0 if V is by rows.
  unsigned stepsByColumns() const { return vByColumns ? 1 : 0; }
  /// Reads again from memory: neighbouring elements of row number `key` of the tile's V, from `column` of the
  /// head on; or, if V is by columns, of that column from the key on.
  Value readValues(Value addresses, unsigned count, Value key, Value column) const;

private:
  Value load(Value address, unsigned columns) const;
  Values loadColumns(Value firstKey, Value addresses) const;
  /// Where a column of the head begins in a pack of V, in elements.
  Value offsetOfColumn(Value column, Value stride) const;
  Value zeros(unsigned columns) const;
  /// Of u4: the scales of the tile's rows and the numbers to subtract, one row per lane.
  struct Scales {
    Value scales, subtracted;
  };
  Scales scalesOf(llvm::StringRef side, Value base, Value firstKey, Value entries) const;
  Value loadScale(llvm::StringRef side, const Scales &scales, Value key, Value column, Value exists) const;

  Emitter &b;
  TileMath &math;
  const Arguments &arguments;
  const KeyPages &pages;
  const LaneRows &rows;
  const HeadColumns &columns;
  Source source;
  mlir::Type stored;
  mlir::Type widened;
  const KeyBlocks *blocks; // or null
  bool vByColumns;
  unsigned tileKv, rowElementsQk, rowElementsV, rowBytesQk, rowBytesV;
};

} // namespace sluice
