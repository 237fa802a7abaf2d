//===- RowState.cpp - the running softmax of a row ------------------------------------------------------===//
#include "attention/RowState.h"
#include "attention/Fp8Math.h"

#include <cmath>
#include <limits>

using namespace mlir;

namespace sluice {

Value Softmax::noMaximum() const {
  return b.f32(-std::numeric_limits<double>::infinity());
}

Value Softmax::raised(Value maximum, Value tileMaximum) const {
  if (isFp8()) return b.maxF(maximum, tileMaximum);
  // The difference of two infinities of equal sign is NaN, which is not larger: the maximum stays.
  Value excess = b.mulF(b.subF(tileMaximum, maximum), scoreFactor);
  Value isLarge = arith::CmpFOp::create(b, arith::CmpFPredicate::OGT, excess, b.f32(mostExcess));
  return b.select(isLarge, tileMaximum, maximum);
}

Value Softmax::reference(Value maximum) const {
  return b.select(b.equalF(maximum, noMaximum()), b.f32(0), maximum);
}

Value Softmax::offset(Value reference) const {
  return b.fma(b.negF(reference), scoreFactor, b.f32(offsetOfZero()));
}

double Softmax::offsetOfZero() const {
  return std::log2(math.factorOfP());
}

Value Softmax::factor(Value before, Value reference) const {
  return b.exp2(b.mulF(b.subF(before, reference), scoreFactor));
}

Value Softmax::centre(Values &scores, Value offset, Value reference) const {
  std::tie(scores, offset) = b.branch(
      b.anyLane(math.isLarge(offset)),
      [&] {
        Values centred = scores;
        Value used = math.centre(centred, offset, b.f32(offsetOfZero()), reference);
        return std::pair(centred, used);
      },
      [&] { return std::pair(scores, offset); });
  return offset;
}

Value Softmax::needsAdjusting(Value factor, Value offset) const {
  return b.select(b.anyLane(b.either(math.isChange(factor), math.isLarge(offset))), b.i32(1), b.i32(0));
}

SmallVector<Value> Softmax::exponentiate(ArrayRef<Value> scores, Value offset, Value &sum,
                                         const Denominator &given) const {
  Values fragments = math.exponentiate(scores, scoreFactor, offset, sum);
  sum = b.select(b.equal(given.isGiven, b.i32(0)), sum, given.sum);
  return fragments;
}

Softmax::Included Softmax::include(Value maximum, Value sum, Values scores, Exponentiate exponentiate) const {
  Included result;
  result.maximum = raised(maximum, maximumOf(scores));
  Value tileReference = reference(result.maximum);
  result.factor = factor(maximum, tileReference);
  Value centredOffset = centre(scores, offset(tileReference), tileReference);
  result.sum = b.mulF(sum, result.factor);
  result.probabilities = exponentiate(result.sum, scores, centredOffset);
  // Otherwise LLVM adds the exponentials after the products, and keeps them all until then.
  result.probabilities.front() = b.after(result.probabilities.front(), result.sum);
  return result;
}

Softmax::Included Softmax::include(Value maximum, Value sum, Values scores, Denominators denominators) const {
  auto exponentiateTile = [&](Value &sum, ArrayRef<Value> scores, Value offset) {
    return exponentiate(scores, offset, sum, denominators(sum, scores, offset));
  };
  return include(maximum, sum, std::move(scores), Exponentiate(exponentiateTile));
}

Softmax::Included Softmax::include(Value maximum, Value sum, Values scores,
                                   TileMath::AddExponentials add) const {
  auto exponentiateTile = [&](Value &sum, ArrayRef<Value> scores, Value offset) {
    return math.exponentiate(scores, scoreFactor, offset, sum, add);
  };
  return include(maximum, sum, std::move(scores), Exponentiate(exponentiateTile));
}

} // namespace sluice
