//===- KeyScaleChanges.cpp - scales of keys that are looked up, as changes of scores --------------------===//
//
// A scale for each key of V would multiply P, whose type may not have the range for that. So it is part of
// the exponent: log2(scale) is added to the score, and the running maximum is that of the sums.
//
//===----------------------------------------------------------------------------------------------------===//
#include "attention/scores/ScoreTile.h"

using namespace mlir;

namespace sluice {

Scores scaledScores(ScoreTile &tile, ArrayRef<Value> raw, const LaneRows &rows) {
  Emitter &b = tile.b;
  auto scaled = [&] { return tile.each(raw, [&](Value score, Value) { return b.mulF(score, tile.scale); }); };
  if (!tile.looksUpKeyScales) return scaled();
  Scores scores = b.branch(b.isNull(tile.inLoop.late("k_scales")), scaled, [&] {
    Value keyScale = loadKeyScale(b, tile.arguments, rows, tile.keys, "k", tile.firstKey);
    return tile.eachOfKey(raw, rows, keyScale, [&](Value score, Value scoreScale) {
      return b.mulF(score, b.mulF(tile.scale, scoreScale));
    });
  });
  // Located again after the scales, so that the rows' places do not take registers before.
  tile.find(b.opaqueScalar(tile.firstKey));
  return scores;
}

static Asked askValueScales(const ScoreTile &tile) {
  if (!tile.looksUpKeyScales) return {};
  Value scales = tile.inLoop.late("v_scales");
  return {tile.b.isFalse(tile.b.isNull(scales)), scales};
}

static Scores applyValueScales(const ScoreTile &tile, ArrayRef<Value> scores, Value) {
  Emitter &b = tile.b;
  LaneRows rows = tile.locate(b.opaqueScalar(b.opaqueScalar(tile.firstKey)));
  Value exponent = b.log2(lookUpScaleOfValue(b, tile.arguments, rows, tile.keys, tile.firstKey));
  return tile.eachOfKey(scores, rows, exponent,
                        [&](Value score, Value keyExponent) { return b.addF(score, keyExponent); });
}

const ScoreChange valueScales = {askValueScales, applyValueScales};

} // namespace sluice
