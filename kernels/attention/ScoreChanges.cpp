//===- ScoreChanges.cpp - changes to scores before the softmax ------------------------------------------===//
#include "attention/ScoreChanges.h"

#include <limits>

using namespace mlir;

namespace sluice {

ScoreChanges::ScoreChanges(Emitter &b, const Arguments &arguments, const LaneRows &rows, const KeyRange &keys,
                           KeyScaling scaling, LocateRow locate)
    : b(b), arguments(arguments), sequence(rows.sequence), keys(keys), rows(rows), scaling(scaling),
      locate(std::move(locate)) {
  Value product =
      arguments.scaled(arguments["scale_log2e"], "q_scale", package::score_q_scale_heads, rows.qHead);
  product = arguments.scaled(product, "k_scale", package::score_k_scale_heads, rows.kvHead);
  // A hidden score is -infinity, and 0 times that would be NaN; the smallest number makes all others 0 as
  // well.
  scaleLog2e = b.select(b.equalF(product, b.f32(0)), b.f32(std::numeric_limits<float>::min()), product);
  constexpr uint32_t any = package::score_changed | package::score_key_scales;
  changed = arguments.flags(scaling == KeyScaling::LookUp ? any : package::score_changed);
  if (scaling == KeyScaling::Loaded) hasScales = arguments.flag(package::score_key_scales);
  exponentFactor =
      b.select(scaling == KeyScaling::Loaded ? arguments.flags(any) : changed, b.f32(1), scaleLog2e);
}

/// Each score with its key's value, which the lane of the score's number has (byScore).
SmallVector<Value> ScoreChanges::eachByScore(ArrayRef<Value> blocks, Value keyValues, ByScore combine) const {
  SmallVector<Value> results;
  unsigned number = 0;
  for (Value block : blocks) {
    auto type = cast<VectorType>(block.getType());
    SmallVector<Value> elements;
    for (unsigned r = 0; r < type.getNumElements(); ++r)
      elements.push_back(combine(b.extract(block, r), b.rowLaneValue(keyValues, number++)));
    results.push_back(b.pack(type, elements));
  }
  return results;
}

Value ScoreChanges::denominator(Value sum, ArrayRef<Value> exponentials, const TileScales &loaded) const {
  using Add = llvm::function_ref<Value(unsigned n, Value p, Value sum)>;
  // Two chains of additions: a single one would be as long as the exponentials it waits for.
  auto inTwoChains = [&](Add add) {
    Value sums[2] = {sum, b.f32(0)};
    for (auto [n, p] : llvm::enumerate(exponentials))
      sums[n % 2] = add(n, p, sums[n % 2]);
    return b.addF(sums[0], sums[1]);
  };
  return b.branch(
      hasScales,
      [&] {
        Value inverse = b.reciprocal(leastScaleOrMore(b, byScore(b, rows, loaded.v)));
        return inTwoChains(
            [&](unsigned n, Value p, Value sum) { return b.fma(b.rowLaneValue(inverse, n), p, sum); });
      },
      [&] { return inTwoChains([&](unsigned, Value p, Value sum) { return b.addF(sum, p); }); });
}

Softmax::Denominator ScoreChanges::denominator(Value sum, ArrayRef<Value> blocks, Value offset, Value tileKey,
                                               MfmaLayout layout) const {
  Softmax::Denominator none{b.undef(b.getF32Type()), b.i32(0)};
  if (scaling != KeyScaling::LookUp) return none;
  return b.rarely(
      changed,
      [&] {
        Value scales = arguments.inLoop(tileKey).late("v_scales");
        return b.branch(
            b.isNull(scales), [&] { return none; },
            [&] {
              LaneRows rows = locate(tileKey);
              Value inverse = b.reciprocal(lookUpScaleOfValue(b, arguments, rows, keys, tileKey)),
                    total = sum;
              Value first = b.mul(rows.laneGroup, b.i32(4));
              for (auto [index, block] : llvm::enumerate(blocks)) {
                for (unsigned r = 0; r < layout.results(); ++r) {
                  if (r % 4 == 0) first = b.after(first, total);
                  Value p = b.exp2(b.addF(b.extract(block, r), offset));
                  Value key = b.add(first, b.i32(layout.rows * index + layout.rowOf(r)));
                  total = b.fma(p, b.laneValue(inverse, key), total);
                }
              }
              return Softmax::Denominator{total, b.i32(1)};
            });
      },
      [&] { return none; });
}

/// Not 0 if a score is -infinity.
static Value hiddenOf(const ScoreTile &tile, ArrayRef<Value> scores) {
  Emitter &b = tile.b;
  if (!tile.isPrefill()) return b.i32(0);
  Value least = b.f32(std::numeric_limits<double>::infinity());
  tile.each(scores, [&](Value score, Value) { return least = b.minF(least, score); });
  Value isHidden = b.anyLane(b.equalF(least, b.f32(-std::numeric_limits<double>::infinity())));
  return b.select(isHidden, b.i32(1), b.i32(0));
}

ScoreChanges::Changed ScoreChanges::change(ArrayRef<Value> raw, Value scale, Value tileKey, Value lastKey,
                                           MfmaLayout layout, ScoresAre are) const {
  ScoreTile tile{.b = b,
                 .arguments = arguments,
                 .sequence = sequence,
                 .keys = keys,
                 .layout = layout,
                 .locate = locate,
                 .firstKey = tileKey,
                 .blocks = unsigned(raw.size()),
                 .areZero = are == ScoresAre::Zero,
                 .looksUpKeyScales = scaling == KeyScaling::LookUp && are != ScoresAre::Zero,
                 .inLoop = arguments.inLoop(tileKey),
                 .lastKey = lastKey};
  LaneRows rows = tile.find(tileKey);
  tile.isWhole = b.isFalse(b.less(sequence.keys, b.add(tileKey, b.i32(layout.rows * raw.size()))));
  tile.scale = b.behindProducts(b.opaque(scale, tileKey));
  Scores scores = scaledScores(tile, raw, rows);
  for (const ScoreChange *kind : scoreChanges) {
    Asked asked = kind->ask(tile);
    if (!asked.isAsked) continue;
    scores = b.branch(
        asked.isAsked, [&] { return kind->apply(tile, scores, asked.argument); }, [&] { return scores; });
  }
  return {scores, hiddenOf(tile, scores)};
}

ScoreChanges::Changed ScoreChanges::apply(ArrayRef<Value> raw, Value tileKey, Value isNeeded,
                                          MfmaLayout layout, ScoresAre are, const TileScales *loaded) const {
  if (are == ScoresAre::Zero) loaded = nullptr;
  Scores blocks(raw);
  Value scoreScale = scaleLog2e;
  if (loaded) {
    scoreScale = b.select(hasScales, b.f32(1), scaleLog2e);
    blocks = b.branch(
        hasScales,
        [&] {
          Value scale = b.behindProducts(b.opaque(scaleLog2e, tileKey)); // of the lane's row
          return eachByScore(raw, byScore(b, rows, loaded->k), [&](Value score, Value keyValue) {
            return b.mulF(score, b.mulF(keyValue, scale));
          });
        },
        [&] { return Scores(raw); });
  }
  Value lastKey = b.maxS(b.sub(sequence.keys, b.i32(1)), b.i32(0));
  Changed results = b.rarely(
      b.both(changed, isNeeded), [&] { return change(blocks, scoreScale, tileKey, lastKey, layout, are); },
      [&] { return Changed{blocks, b.i32(0)}; });
  if (!loaded) return results;
  auto withValues = [&] {
    Value exponent = b.log2(leastScaleOrMore(b, byScore(b, rows, loaded->v)));
    return eachByScore(results.scores, exponent,
                       [&](Value score, Value keyValue) { return b.addF(score, keyValue); });
  };
  return {b.branch(hasScales, withValues, [&] { return results.scores; }), results.hidden};
}

} // namespace sluice
