//===- SoftCap.cpp - a soft cap of scores ---------------------------------------------------------------===//
//
//   c * tanh(x / c) = c * (1 - 2 / (exp2(x * log2(e) * 2 / c) + 1)): an error of some units in the last place
//   of c
//
//===----------------------------------------------------------------------------------------------------===//
#include "attention/scores/ScoreTile.h"

using namespace mlir;

namespace sluice {

static Asked askSoftCap(const ScoreTile &tile) {
  Emitter &b = tile.b;
  Value cap = tile.arguments.late("cap_log2e");
  return {b.isFalse(b.equalF(cap, b.f32(0))), cap};
}

static Scores applySoftCap(const ScoreTile &tile, ArrayRef<Value> scores, Value cap) {
  Emitter &b = tile.b;
  Value twoPerCap = tile.arguments.late("two_per_cap");
  return tile.each(scores, [&](Value score, Value) {
    Value power = b.exp2(b.mulF(score, twoPerCap));
    Value tanh = b.fma(b.f32(-2), b.reciprocal(b.addF(power, b.f32(1))), b.f32(1));
    return b.mulF(tanh, cap);
  });
}

const ScoreChange softCap = {askSoftCap, applySoftCap};

} // namespace sluice
