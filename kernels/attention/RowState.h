//===- RowState.h - the running softmax of a row ----------------------------------------------*- C++ -*-===//
//
// Online softmax over tiles of keys (Milakov and Gimelshein 2018, arXiv 1805.02867; Dao et al. 2022, arXiv
// 2205.14135): exponentials are relative to the largest score so far, and what has been summed up is taken
// relative to a new maximum by a factor.
//
// The maximum that is kept may be exceeded by a little, so that it changes in few tiles: sums are multiplied
// by the factor in those only. Exponentials are then larger than 1, which F32 sums and 16-bit P have room
// for.
//
// A row whose keys have all been hidden so far has the maximum -infinity. Exponents are taken relative to 0
// then, so that no (-infinity) - (-infinity) arises.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "attention/TileMath.h"

namespace sluice {

/// What the keys so far come to, for this lane's row.
struct RowState {
  mlir::Value maximum;                   // of the scores, or little less
  mlir::Value sum;                       // of this lane group's exponentials, relative to the maximum, with
                                         // TileMath::factorOfP()
  llvm::SmallVector<mlir::Value> output; // O^T, relative to the maximum
};

class Softmax {
public:
  using Value = mlir::Value;
  using Values = llvm::SmallVector<Value>;

  /// `scoreFactor` takes scores to exponents of two.
  Softmax(Emitter &b, TileMath &math, Value scoreFactor, Value lane)
      : b(b), math(math), scoreFactor(scoreFactor), lane(lane) {}

  /// The largest exponent of an exponential, to base 2, that may come of it: P of 16 bits has the same
  /// relative error there as below 1. FP8 has no room above 1.
  static constexpr double mostExcess = 8;

  /// The state before the first tile.
  Value noMaximum() const;
  Value noSum() const { return b.f32(0); }

  /// The largest of a tile's scores, of all lane groups.
  Value maximumOf(llvm::ArrayRef<Value> scores) const { return math.maximum(scores, lane); }
  /// The maximum after a tile whose largest score is `ofTile`.
  Value raised(Value maximum, Value ofTile) const;
  /// What exponents are relative to.
  Value reference(Value maximum) const;
  /// What an exponent adds to score * scoreFactor.
  Value offset(Value reference) const;
  /// Takes what is relative to `before` to the reference: exactly 1 where the maximum stays, since it comes
  /// from the difference, however the offset was rounded.
  Value factor(Value before, Value reference) const;
  /// The offset to use, with scores that were made relative to the reference where it would not be exact:
  /// one branch, taken where it is so for any row of the wave ...
  Value centre(Values &scores, Value offset, Value reference) const;
  /// ... or what stands in that branch, on a maximum.
  Value centred(Values &scores, Value offset, Value maximum) const {
    return math.centre(scores, offset, b.f32(offsetOfZero()), reference(maximum));
  }
  /// i32, wave-uniform: whether what is relative to the old maximum has to be multiplied with `factor`, or
  /// scores to be centred, for any row of the wave.
  Value needsAdjusting(Value factor, Value offset) const;
  /// Fragments of P^T; `sum`, relative to the same maximum, grows by them.
  Values exponentiate(llvm::ArrayRef<Value> scores, Value offset, Value &sum) const {
    return math.exponentiate(scores, scoreFactor, offset, sum);
  }

  /// All of it: maximum and sum with a tile's scores, the factor of what is relative to the old maximum, and
  /// the fragments of P^T.
  struct Included {
    Value maximum, sum, factor;
    Values probabilities;
  };
  Included include(Value maximum, Value sum, Values scores) const;

private:
  bool isFp8() const { return math.layout.elementBytes == 1; }
  double offsetOfZero() const; // the offset if the reference is 0

  Emitter &b;
  TileMath &math;
  Value scoreFactor, lane;
};

} // namespace sluice
