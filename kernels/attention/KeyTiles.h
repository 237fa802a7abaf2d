//===- KeyTiles.h - K and V in LDS ------------------------------------------------------------*- C++ -*-===//
//
// Each panel of K or V (HeadColumns.h) is a tile in LDS with its own copy. K tiles are XOR-swizzled in chunks
// of what a lane reads at a time, as the banks of the chip require (period 8 rows with 32 banks): these reads
// are conflict-free. V tiles are read along their rows and need no swizzle. If V is the front of the rows of
// K, one tile serves both. Copies are direct or go through registers. K and V may be bytes in memory, which
// copies through registers convert; or bytes in LDS too, which are converted when they are read.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "attention/HeadColumns.h"
#include "attention/KeyPages.h"
#include "attention/TileMath.h"
#include "target/Chips.h"

namespace sluice {

/// Copies of the rows of K and V of one head into tiles in LDS, contiguous or through the page table.
class KeyCopies {
public:
  using Value = mlir::Value;

  /// Keys at or past the range's keyLimit become zeros and are not read. `pages`: null without a page
  /// table. Every reference must outlive this.
  KeyCopies(Emitter &b, const Arguments &arguments, const KeyRange &keys, const KeyPages *pages)
      : b(b), arguments(arguments), keys(keys), pages(pages) {}

  /// The rows of a tile, and the page table's entries for them, which K and V share.
  struct Rows {
    Value first, entries;
  };
  Rows rowsFrom(Value firstKey) const { return {firstKey, pages ? pages->lookUp(firstKey) : Value()}; }
  /// Which of these keys have a page; null without a page table.
  Value found(const Rows &rows) const { return pages ? pages->found(rows.entries) : Value(); }

  /// The token of a copy of the tile's rows. `side` is "k" or "v", `base` row 0 of the head: of the sequence,
  /// or with pages of page 0. Columns at or past `columnLimit`, if not null, become zeros. `fetched`: the
  /// element type of the source if the rows go through registers; else null.
  Value copy(llvm::StringRef side, Value base, const Rows &rows, Value tile, Value columnLimit,
             mlir::Type fetched) const;

private:
  Emitter &b;
  const Arguments &arguments;
  const KeyRange &keys;
  const KeyPages *pages;
};

/// How K and V are stored.
struct KeyStorage {
  mlir::Type type;    // in memory
  mlir::Type inTiles; // in LDS: if it is not `type`, copies convert
  mlir::Type
      widened; // of bytes that are converted to elements of the arithmetic when they are read; else null
  mlir::Type fetched; // elements in memory, to copies through registers; null: copies are direct
  bool byColumns;     // V in LDS: see ColumnLayout.h
  unsigned tileKv;    // rows of a tile

  /// Elements of the arithmetic come from memory unchanged, directly or through registers; or as bytes of
  /// `numbers`, if that is not null, which copies convert in registers or all waves when they read them.
  static KeyStorage of(mlir::Type numbers, mlir::Type arithmetic, bool copiesConvert, bool throughRegisters,
                       bool byColumns, unsigned tileKv) {
    if (!numbers) {
      mlir::Type fetched = throughRegisters || byColumns ? arithmetic : mlir::Type();
      return {arithmetic, arithmetic, mlir::Type(), fetched, byColumns, tileKv};
    }
    mlir::Type bytes = mlir::IntegerType::get(numbers.getContext(), 8);
    if (copiesConvert) return {bytes, arithmetic, mlir::Type(), numbers, byColumns, tileKv};
    mlir::Type fetched = throughRegisters || byColumns ? arithmetic : mlir::Type();
    return {bytes, bytes, numbers, fetched, byColumns, tileKv};
  }

  unsigned bytes() const { return inTiles.getIntOrFloatBitWidth() / 8; } // of an element in LDS
  /// The columns of the narrowest panel that can be copied efficiently.
  unsigned narrowestPanel(unsigned waves) const;
};

/// The tiles of K or of V: one for each panel.
class KeyTiles {
public:
  using Value = mlir::Value;
  enum class Side { k, v };
  /// The source of the copies.
  struct Source {
    Side side;
    Value base;    // row 0: see KeyCopies
    Value headDim; // columns of the tensor, which may be fewer than the kernel's
    bool inPacks;  // whether columns of K may be in packs
  };

  /// Allocates the tiles. `copies` must outlive this.
  KeyTiles(Emitter &b, TileMath &math, const Arguments &arguments, const KeyCopies &copies, const Chip &chip,
           const KeyStorage &storage, const Source &source, llvm::ArrayRef<Panel> panels,
           llvm::StringRef label);

  /// Copies the rows. Returns the tokens of the copies, which must be waited for.
  llvm::SmallVector<Value> copy(const KeyCopies::Rows &rows) const;
  /// Neighbouring elements of a row, in the arithmetic's type; if V is by columns, elements of a column.
  Value read(unsigned panel, unsigned elements, Value key, Value column) const;
  bool isByColumns() const { return source.side == Side::v && storage.byColumns; }
  /// Steps of the product for which a unit of a column is enough; 0 if the tile is by rows.
  unsigned stepsByColumns() const { return isByColumns() ? 2 : 0; }

private:
  Emitter &b;
  TileMath &math;
  const Arguments &arguments;
  const KeyCopies &copies;
  KeyStorage storage;
  Source source;
  llvm::SmallVector<Panel> panels;
  llvm::SmallVector<Value> tiles;
};

} // namespace sluice
