//===- RowState.h - the running softmax of a row ----------------------------------------------*- C++ -*-===//
//
// Online softmax over tiles of keys (Milakov and Gimelshein 2018, arXiv 1805.02867; Dao et al. 2022, arXiv
// 2205.14135): exponentials are relative to the largest score so far, and a factor rescales earlier sums to a
// new maximum.
//
// Scores may exceed the kept maximum by a little, so that it changes in few tiles: only those multiply the
// sums by the factor. Exponentials are then larger than 1; F32 sums and 16-bit P have room for that.
//
// A row whose keys have all been hidden so far has the maximum -infinity. Its exponents are relative to 0, so
// that no (-infinity) - (-infinity) arises.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "attention/TileMath.h"

namespace sluice {

/// The result of the keys so far, for this lane's row.
struct RowState {
  mlir::Value maximum;                   // of the scores, or slightly less
  mlir::Value sum;                       // of this lane group's exponentials, relative to the maximum, with
                                         // TileMath::factorOfP()
  llvm::SmallVector<mlir::Value> output; // O^T, relative to the maximum
  static auto members(auto &of) { return std::tie(of.maximum, of.sum, of.output); }
};

class Softmax {
public:
  using Value = mlir::Value;
  using Values = llvm::SmallVector<Value>;

  /// `scoreFactor` converts scores to exponents of two.
  Softmax(Emitter &b, TileMath &math, Value scoreFactor, Value lane)
      : b(b), math(math), scoreFactor(scoreFactor), lane(lane) {}

  /// The largest base-2 exponent of an exponential that may result: P of 16 bits has the same relative error
  /// there as below 1. FP8 has no room above 1.
  static constexpr double mostExcess = 8;

  /// The state before the first tile.
  Value noMaximum() const;
  Value noSum() const { return b.f32(0); }

  /// The largest of a tile's scores, of all lane groups.
  Value maximumOf(llvm::ArrayRef<Value> scores) const { return math.maximum(scores, lane); }
  /// The maximum after a tile whose largest score is `tileMaximum`.
  Value raised(Value maximum, Value tileMaximum) const;
  /// The value that exponents are relative to.
  Value reference(Value maximum) const;
  /// The term that an exponent adds to score * scoreFactor.
  Value offset(Value reference) const;
  /// Rescales values relative to `before` to the reference: exactly 1 if the maximum stays, since it is
  /// computed from the difference, however the offset was rounded.
  Value factor(Value before, Value reference) const;
  /// The offset to use. If it would not be exact, the scores are made relative to the reference: one
  /// branch, taken if this applies to any row of the wave ...
  Value centre(Values &scores, Value offset, Value reference) const;
  /// ... or the contents of that branch, for a maximum.
  Value centred(Values &scores, Value offset, Value maximum) const {
    return math.centre(scores, offset, b.f32(offsetOfZero()), reference(maximum));
  }
  /// i32, wave-uniform: whether, for any row of the wave, values relative to the old maximum must be
  /// multiplied by `factor` or scores must be centred.
  Value needsAdjusting(Value factor, Value offset) const;
  /// The denominator after a tile whose terms are not its exponentials; otherwise `isGiven`, i32 and
  /// wave-uniform, is 0.
  struct Denominator {
    Value sum, isGiven;
    static auto members(auto &of) { return std::tie(of.sum, of.isGiven); }
  };
  /// Makes one of the denominator before the tile, its scores and their offset.
  using Denominators = llvm::function_ref<Denominator(Value sum, llvm::ArrayRef<Value> scores, Value offset)>;
  /// Fragments of P^T; adds them to `sum`, which is relative to the same maximum, or takes `given`.
  Values exponentiate(llvm::ArrayRef<Value> scores, Value offset, Value &sum, const Denominator &given) const;

  /// All steps: maximum and sum including a tile's scores, the factor for values relative to the old maximum,
  /// and the fragments of P^T.
  struct Included {
    Value maximum, sum, factor;
    Values probabilities;
  };
  Included include(Value maximum, Value sum, Values scores, Denominators denominators) const;
  /// The same with sums of exponentials made by `add`.
  Included include(Value maximum, Value sum, Values scores, TileMath::AddExponentials add) const;

private:
  using Exponentiate = llvm::function_ref<Values(Value &sum, llvm::ArrayRef<Value> scores, Value offset)>;
  Included include(Value maximum, Value sum, Values scores, Exponentiate exponentiate) const;
  bool isFp8() const { return math.layout.elementBytes == 1; }
  double offsetOfZero() const; // the offset if the reference is 0

  Emitter &b;
  TileMath &math;
  Value scoreFactor, lane;
};

} // namespace sluice
