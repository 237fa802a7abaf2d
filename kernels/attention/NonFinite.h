//===- NonFinite.h - keeping infinity and NaN in V to the rows that see their keys ------------*- C++ -*-===//
//
// A key that is hidden from a row has a weight of 0 there, and 0 times infinity is NaN: in O^T += V^T * P^T a
// non-finite V would reach every row of the tile. So a tile with hidden keys is tested, and if it has such
// elements, its product is computed as two:
//
//   O^T += clean(V)^T * P^T       clean: 0 where V is not finite
//   C^T  = code(V)^T * visible^T  visible: 1 where the row sees the key, else 0
//
//   code      +infinity  1        C counts, in its low bits, the visible keys that add +infinity, and from
//             -infinity  128      bit 7 on those that add -infinity; NaN is both. All products and sums are
//             NaN        129      whole numbers, exact in the types that they have.
//             finite     0
//
// and O^T then gets the infinities that C counts. With the weights themselves, a key whose weight underflows
// would be lost, and without the codes, NaN and infinity would look alike. In FP8 only NaN is not finite: its
// code is 1, multiplied by 129 after summation.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "attention/TileMath.h"

namespace sluice {

class NonFinite {
public:
  using Value = mlir::Value;
  using Values = llvm::SmallVector<Value>;
  /// Reads `columns` neighbouring elements of a row of the tile of V, from `column` on.
  using Read = llvm::function_ref<Value(unsigned columns, Value key, Value column)>;

  NonFinite(Emitter &b, TileMath &math, mlir::Type element);

  /// The keys of V's tile and the columns that are read, at least 512 elements in total; both are powers of
  /// two.
  struct Extent {
    unsigned keys, columns;
  };
  /// Whether there is an infinity or NaN, the same for all lanes of the wave.
  Value isIn(Extent extent, Value lane, Read read) const;

  /// The same for fragments of V; `each` passes every one to its argument.
  Value isIn(llvm::function_ref<void(llvm::function_ref<void(Value fragment)>)> each) const;

  /// The state after a tile, O^T and other results: `usual` makes it of the one `before`; or `detour`, if
  /// keys of the tile may be hidden and `hasNonFinite`, which asks isIn(), holds.
  template <typename State>
  State choose(Value mayHide, llvm::function_ref<Value()> hasNonFinite, const State &before,
               llvm::function_ref<State()> detour, llvm::function_ref<State(const State &)> usual) const {
    // LLVM places the two sides of a branch one after the other, and registers that the later side needs are
    // occupied during the earlier one. So the rare path is emitted first, as a detour that changes the state
    // and clears a flag. The usual path is guarded by that flag, in a form that LLVM cannot trace.
    using Rare = std::tuple<State, Value>; // with whether the usual path is left, an i32
    auto stay = [&] { return Rare{before, b.i32(1)}; };
    auto leave = [&] { return Rare{detour(), b.i32(0)}; };
    Rare rare = b.rarely(mayHide, [&] { return b.branch(hasNonFinite(), leave, stay); }, stay);
    Value isLeft = b.equal(b.opaqueScalar(std::get<1>(rare)), b.i32(1));
    return b.usually(isLeft, [&] { return usual(std::get<0>(rare)); }, [&] { return std::get<0>(rare); });
  }

  /// `blocks`: the results of Visibility and ScoreChanges for scores of 0: -infinity for hidden keys. Returns
  /// fragments of 1 and 0.
  Values visible(llvm::ArrayRef<Value> blocks) const;

  /// Adds to `output`, neighbouring tiles of O^T: tile m holds the lane's own column `firstColumn` + m *
  /// `ownStep` of V. `laneKey` is 4 * lane group. `byColumns`: `read` returns elements of a column, not of
  /// a row.
  Values accumulate(llvm::ArrayRef<Value> output, llvm::ArrayRef<Value> probabilities,
                    llvm::ArrayRef<Value> visible, Value firstColumn, unsigned ownStep, Value laneKey,
                    bool byColumns, Read read) const;

private:
  /// Some keys of a column, starting at that of element k of a fragment.
  using ReadKeys = llvm::function_ref<Value(unsigned count, unsigned k)>;
  Value fragmentOfKeys(ReadKeys read) const;
  Value fragmentOfQuads(ReadKeys read) const;
  bool isFp8() const { return math.layout.elementBytes == 1; }
  Value splat(mlir::VectorType type, unsigned bits) const;
  mlir::VectorType partsOf(unsigned elements) const;
  Value include(Value seen, Value value) const;
  Value hasSeen(Value seen) const;
  Value ones(llvm::ArrayRef<Value> isOne) const;
  /// A fragment of V as finite elements and codes.
  struct Split {
    Value clean, codes;
  };
  Split split(Value fragment) const;
  Value deliver(Value output, Value counts) const;
  Values addInPlace(llvm::ArrayRef<Value> tiles, Value number, llvm::ArrayRef<Value> clean,
                    llvm::ArrayRef<Value> probabilities, Value counts) const;

  Emitter &b;
  TileMath &math;
  mlir::Type element;
  unsigned infinity; // its bits; FP8 has no infinity
};

} // namespace sluice
