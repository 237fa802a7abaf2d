//===- OwnTiles.h - K and V of a wave's own tiles of keys -------------------------------------*- C++ -*-===//
//
// A wave that has tiles of keys for itself reads them from memory straight into its registers: without LDS,
// waiting only for its own loads. Loads are in the order in which the products need their values, and the
// loop carries the values from one tile to the next as they are in memory.
//
// Two ways to store keys: rows of elements (KeyRegisters) and rows of blocks (BlockRegisters).
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "attention/TileProducts.h"

namespace sluice {

class OwnTiles {
public:
  using Value = mlir::Value;
  using Values = llvm::SmallVector<Value>;

  virtual ~OwnTiles() = default;

  /// A loaded tile of K, and what loading its V will need.
  struct LoadedKeys {
    Values k, forValues;
  };
  /// Loads K of the tile from `firstKey` on, with the entries of its keys.
  virtual LoadedKeys loadKeys(Value firstKey, Value entries) const = 0;
  /// A loaded tile of V, and what reading it again needs.
  struct LoadedValues {
    Values v, forReading;
  };
  /// Loads V of the same tile. `forValues`: of its K.
  virtual LoadedValues loadValues(Value firstKey, Value entries, llvm::ArrayRef<Value> forValues) const = 0;

  /// Called once, after the first loads, with the rows of Q.
  virtual void prepare(const Query &query) = 0;
  /// The raw scores of loaded K, in the layout of TileProducts::scores; they can be read on every path.
  virtual Values scores(const TileProducts &products, Value tileKey, llvm::ArrayRef<Value> k) const = 0;

  /// The arguments of TileProducts::addValues that do not come from V. O^T is to be multiplied by a factor
  /// for each row before.
  struct Product {
    llvm::ArrayRef<Value> output;
    Value factor;
    llvm::ArrayRef<Value> probabilities;
    llvm::ArrayRef<ScoreRules> rules;
    Value tileKey, hidden;
  };
  virtual Values addValues(const TileProducts &products, const Product &product,
                           const LoadedValues &loaded) const = 0;
};

} // namespace sluice
