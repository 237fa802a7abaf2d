//===- RowState.cpp - the running softmax of a row ------------------------------------------------------===//
#include "attention/RowState.h"

#include <limits>

using namespace mlir;

namespace sluice {

Value Softmax::noMaximum() const {
  return b.f32(-std::numeric_limits<double>::infinity());
}

Value Softmax::reference(Value maximum) const {
  return b.select(b.equalF(maximum, noMaximum()), b.f32(0), maximum);
}

Value Softmax::offset(Value reference) const {
  return b.negF(b.mulF(reference, scoreFactor));
}

Value Softmax::factor(Value before, Value reference) const {
  return b.exp2(b.mulF(b.subF(before, reference), scoreFactor));
}

Softmax::Included Softmax::include(Value maximum, Value sum, Values scores) const {
  Included result;
  result.maximum = b.maxF(maximum, maximumOf(scores));
  Value ofTile = reference(result.maximum);
  result.factor = factor(maximum, ofTile);
  Value ofExponents = centre(scores, offset(ofTile), [&] { return ofTile; });
  result.sum = b.mulF(sum, result.factor);
  result.probabilities = exponentiate(scores, ofExponents, result.sum);
  return result;
}

} // namespace sluice
