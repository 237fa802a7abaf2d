//===- TileProducts.h - the two matrix products of a tile of keys -----------------------------*- C++ -*-===//
//
//   S^T = K * Q^T     K is operand A, Q^T stays in registers as operand B
//   O^T += V^T * P^T  V^T is operand A, P^T is operand B
//
// With S transposed, a lane holds the scores of one row, and the registers of S^T, packed, are the B
// fragments of P^T (MfmaLayout.h): P never leaves its registers. Functions supply the rows of K and V, so
// that they may be in LDS or anywhere else; HeadColumns.h says which lane asks for which columns.
//
// A wave may have several blocks of rows of Q. They share the data read of K and V, and their values follow
// one another, block by block.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "attention/HeadColumns.h"
#include "attention/NonFinite.h"
#include "attention/Query.h"
#include "attention/ScoreRules.h"
#include "attention/TileMath.h"

namespace sluice {

class TileProducts {
public:
  using Value = mlir::Value;
  using Values = llvm::SmallVector<Value>;
  /// Reads `columns` neighbouring elements of a row of the tile, from `column` of a panel on.
  using Read = llvm::function_ref<Value(unsigned panel, unsigned columns, Value key, Value column)>;

  /// lane, laneRow and laneGroup: see LaneRows. `columns` must outlive this. `firstColumn`: where the wave's
  /// part of the columns of V begins; null if it has all. `isFull`: the registers do not suffice for the
  /// addresses of all reads of a tile, so each tile computes them again. `isFinite`: V has only finite
  /// numbers.
  TileProducts(Emitter &b, TileMath &math, mlir::Type element, const HeadColumns &columns, unsigned tileKv,
               Value lane, Value laneRow, Value laneGroup, Value firstColumn, bool isFull, bool isFinite)
      : b(b), math(math), nonFinite(b, math, element), columns(columns), tileKv(tileKv), lane(lane),
        laneRow(laneRow), laneGroup(laneGroup), firstColumn(firstColumn), isFull(isFull), isFinite(isFinite) {
  }

  /// For a block of rows.
  unsigned scoreBlocks() const { return tileKv / math.layout.rows; }
  unsigned probabilityFragments() const { return tileKv / math.layout.depth(); }
  unsigned outputTiles() const { return columns.outputTiles; }
  /// O^T of a block of rows before the first tile.
  Values zeroOutput() const { return Values(columns.outputTiles, math.zeros()); }

  /// The raw scores of this lane's row in each of `queries`: element r of block n belongs to key layout.rows
  /// * n + layout.rowOf(r) + 4 * laneGroup of the tile.
  Values scores(llvm::ArrayRef<Query> queries, Value tileKey, Read readK) const;

  /// How to read V: in the fixed order in which the product asks, or at any position, which is rare.
  struct ReadValues {
    Read inOrder, anywhere;
    bool isTile;                 // whether reading at any position costs no more
    unsigned stepsByColumns = 0; // a read in order is of a column, for this many steps; 0: of a row
  };

  /// The probabilities of a tile, for one block of rows per element of `rules`, which found `hidden` (see
  /// ScoreRules::Applied).
  struct Weights {
    llvm::ArrayRef<Value> probabilities;
    llvm::ArrayRef<ScoreRules> rules;
    Value tileKey, hidden;
  };
  /// O^T including the tile of V. Non-finite V reaches only the rows that see its key.
  Values addValues(llvm::ArrayRef<Value> output, const Weights &weights, const ReadValues &readV) const;
  /// The same together with the state `more` (Carried.h), which is emitted with the product, and has the
  /// shape of `unknown`.
  template <typename More>
  std::pair<Values, More> addValuesAnd(llvm::function_ref<More()> more, const More &unknown,
                                       llvm::ArrayRef<Value> output, const Weights &weights,
                                       const ReadValues &readV) const {
    Sums sums =
        sum([&] { return carried::flatten(more()); }, carried::flatten(unknown), output, weights, readV);
    return {sums.output, carried::withValues(unknown, sums.more)};
  }

  /// The same for finite V whose fragments are made elsewhere: those of a step of the product and of all
  /// columns of a read.
  using MakeFragments = llvm::function_ref<Values(unsigned step, unsigned read)>;
  Values addFragments(llvm::ArrayRef<Value> output, llvm::ArrayRef<Value> probabilities,
                      MakeFragments makeFragments) const;

  /// Fragments of 1 where a row of `rules` sees a key of the tile, else 0; to be emitted where it is rare.
  Values visible(const ScoreRules &rules, Value tileKey) const;

private:
  /// The sum of addValuesAnd(), with the values of `more`.
  struct Sums {
    Values output, more;
    static auto members(auto &of) { return std::tie(of.output, of.more); }
  };
  Sums sum(llvm::function_ref<Values()> more, llvm::ArrayRef<Value> unknown, llvm::ArrayRef<Value> output,
           const Weights &weights, const ReadValues &readV) const;
  /// laneRow and laneGroup, from which addresses are computed.
  struct Place {
    Value row, group;
  };
  Place placeIn(Value tileKey) const;
  Value valueColumn(const ColumnRead &read, Value row) const;
  /// Calls `use` with fragments of V^T: the step of the product and the tile of O^T of each.
  using Use = llvm::function_ref<void(unsigned step, unsigned tile, Value fragment)>;
  void eachFragment(Value tileKey, const ReadValues &readV, Use use) const;
  void eachFragmentByColumns(Place place, unsigned steps, Read readV, Use use) const;
  Values add(llvm::ArrayRef<Value> output, llvm::ArrayRef<Value> probabilities, Value tileKey,
             const ReadValues &readV) const;
  Value hasNonFinite(Value tileKey, const ReadValues &readV) const;
  Values addNonFinite(llvm::ArrayRef<Value> output, const Weights &weights, const ReadValues &readV) const;

  Emitter &b;
  TileMath &math;
  NonFinite nonFinite;
  const HeadColumns &columns;
  unsigned tileKv;
  Value lane, laneRow, laneGroup, firstColumn;
  bool isFull, isFinite;
};

} // namespace sluice
