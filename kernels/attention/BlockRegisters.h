//===- BlockRegisters.h - K and V in blocks, in the registers of a wave -----------------------*- C++ -*-===//
//
// Numbers of a block share a scale, and those of 4 bits a number to subtract, so an element is
// scale * (number - subtracted). Elements of K are never made. K * Q^T is computed from the numbers
// themselves, which 16-bit types hold exactly, block by block:
//
//   score = sum over blocks of scale * (numbers * Q - subtracted * sum of Q's elements in the block)
//
// The first term is two MFMAs for each block, whose result has the keys of the scales in its registers. The
// second is itself a product, of the keys' terms and the sums of Q: an MFMA of F32 for four blocks.
//
// In V^T * P^T the sum is over keys, so elements of V are made, in F32: one instruction multiplies and
// subtracts for two columns of a key, and another cuts those of two keys to 16 bits and puts them side by
// side, as a fragment has them. Cutting is nearly as good as rounding, since the scale has a factor for it
// (TileMath::factorOfP).
//
// A lane loads one scale of 16 keys and 128 columns. The lanes that need it get it by DPP: those of V from
// their group of four, those of K after one ds_bpermute (byScore).
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "attention/KeyBlocks.h"
#include "attention/KeyPages.h"
#include "attention/OwnTiles.h"

namespace sluice {

class BlockRegisters : public OwnTiles {
public:
  /// Row 0 of page 0 of k and v, and the columns that the tensors have; of the scales in arrays, if the
  /// blocks have such, also row 0.
  struct Source {
    Value k, v, columnsQk, columnsV, kScales, vScales;
  };
  /// Every reference must outlive this.
  BlockRegisters(Emitter &b, TileMath &math, const Arguments &arguments, const KeyPages &pages,
                 const LaneRows &rows, const HeadColumns &columns, const Source &source,
                 const KeyBlocks &blocks, unsigned tileKv);

  LoadedKeys loadKeys(Value firstKey, Value entries) const override;
  LoadedValues loadValues(Value firstKey, Value entries, llvm::ArrayRef<Value> forValues) const override;
  void prepare(const Query &query) override;
  Values scores(const TileProducts &products, Value tileKey, llvm::ArrayRef<Value> k) const override;
  Values addValues(const TileProducts &products, const Product &product,
                   const LoadedValues &loaded) const override;

  /// An element of V is number * factor + term, without a term if nothing is subtracted.
  struct Factors {
    Value factor, term;
    static auto members(auto &of) { return std::tie(of.factor, of.term); }
  };

private:
  static constexpr unsigned scaledTogether = 4; // blocks of a row whose scales 16 lanes have

  /// A side's rows, and which key of 16 and which of four blocks a lane has scales of.
  struct Side {
    llvm::StringRef name;
    Value base, scalesBase, limit;
    unsigned elements; // of a row
    Value keyOfLane, blockOfLane;
  };
  Side sideOfKeys() const;
  Side sideOfValues() const;
  /// Where rows begin, one of the tile's rows per lane, and their scales, which may be in arrays.
  struct RowAddresses {
    Value rows, scales;
    static auto members(auto &of) { return std::tie(of.rows, of.scales); }
  };
  RowAddresses addressesOf(const Side &side, Value firstKey, Value entries) const;
  /// V's addresses, from K's if both have the same strides.
  RowAddresses addressesOfValues(Value firstKey, Value entries, const RowAddresses &keyAddresses) const;
  /// The rows in which this lane's scales are, of 16 keys after 16.
  Values rowsOfScales(const Side &side, Value firstKey, Value addresses) const;
  /// Appends the scales of 16 keys after 16 and four blocks after four, then the numbers to subtract.
  void loadScales(const Side &side, Value firstKey, llvm::ArrayRef<Value> rowsOfScales, Values &loaded) const;
  /// These loaded values, in F32; what to subtract may be a constant.
  struct Scales {
    Value scale, subtracted;
  };
  Scales scalesOf(llvm::ArrayRef<Value> loaded, const Side &side, unsigned sixteen, unsigned four) const;
  unsigned sixteens() const { return tileKv / math.layout.rows; }
  unsigned fours(unsigned elements) const { return elements / (scaledTogether * KeyBlocks::blockElements); }
  /// How many values loadScales appends.
  unsigned scaleLoads(unsigned elements) const {
    return sixteens() * fours(elements) * (blocks.hasArrays() ? 2 : 1);
  }
  Value nothing(unsigned elements) const;
  Value firstColumnOfKeys() const;
  Value firstColumnOfValues() const;
  Value toThirteenBits(Value number) const;
  /// Of 16 keys after 16 and four blocks after four.
  llvm::SmallVector<Factors> factorsOfValues(llvm::ArrayRef<Value> loaded) const;
  unsigned indexOf(unsigned sixteen, const ColumnRead &read) const {
    return sixteen * fours(elementsV) + read.headColumn / (scaledTogether * KeyBlocks::blockElements);
  }
  /// The fragments of V^T of 16 keys for the columns of a read.
  Values fragmentsOfValues(llvm::ArrayRef<Value> numbers, Factors factors, const ColumnRead &read) const;
  /// O^T, multiplied by its factors, and finite factors of V: one that is not would reach all rows in the
  /// product (see NonFinite.h).
  struct Rows {
    Values output;
    llvm::SmallVector<Factors> factors;
    static auto members(auto &of) { return std::tie(of.output, of.factors); }
  };
  Rows keepToRows(const TileProducts &products, const Product &product,
                  llvm::ArrayRef<Factors> factors) const;
  /// With 0 in place of factors and terms that are not finite, and NaN where a row sees an element with one:
  /// all columns of a block are concerned alike.
  using Words = std::array<Value, 2>;
  Words bitsOf(Value visible, Value group) const;
  Rows separate(const TileProducts &products, const Product &product, llvm::ArrayRef<Value> output,
                llvm::ArrayRef<Factors> factors) const;

  Emitter &b;
  TileMath &math;
  const Arguments &arguments;
  const KeyPages &pages;
  const LaneRows &rows;
  const HeadColumns &columns;
  Source source;
  const KeyBlocks &blocks;
  unsigned tileKv, elementsQk, elementsV;
  llvm::SmallVector<Values> queryFragments; // of each read of K, in the order of KeyBlocks::orderOf
  Value sameStrides;                        // whether K and V have the same strides
  Values querySums;                         // of four blocks each, that of block n in lane group n
};

} // namespace sluice
