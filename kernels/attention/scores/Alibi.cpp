//===- Alibi.cpp - a slope for each head, times the distance of a key (ALiBi) ---------------------------===//
#include "attention/scores/ScoreTile.h"
#include "attention/Visibility.h"

#include <numbers>

using namespace mlir;

namespace sluice {

static Asked askAlibi(const ScoreTile &tile) {
  Value slopes = tile.arguments.late("alibi_slopes");
  return {tile.b.isFalse(tile.b.isNull(slopes)), slopes};
}

static Scores applyAlibi(const ScoreTile &tile, ArrayRef<Value> scores, Value slopes) {
  Emitter &b = tile.b;
  Value slope = b.mulF(tile.headElement(slopes, "alibi_batch_stride"), b.f32(-std::numbers::log2e));
  Value diagonal = b.add(tile.place.row, shiftOf(b, tile.inLoop, tile.sequence));
  return tile.each(scores, [&](Value score, Value key) {
    Value distance = b.maxS(b.sub(diagonal, key), b.sub(key, diagonal));
    Value length = arith::SIToFPOp::create(b, b.getF32Type(), distance);
    return b.fma(slope, length, score);
  });
}

const ScoreChange alibi = {askAlibi, applyAlibi};

} // namespace sluice
