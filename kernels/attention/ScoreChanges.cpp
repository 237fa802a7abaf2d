//===- ScoreChanges.cpp - changes to scores before the softmax ------------------------------------------===//
#include "attention/ScoreChanges.h"

#include <cmath>
#include <limits>
#include <numbers>

using namespace mlir;

namespace sluice {

ScoreChanges::ScoreChanges(Emitter &b, const Arguments &arguments, const LaneRows &rows, const KeyRange &keys,
                           KeyScaling scaling, Locate locate)
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

/// The smallest bias that is infinite in units of the base-2 exponent.
static float infiniteBias() {
  constexpr auto log2e = std::numbers::log2e_v<float>;
  float bias = std::numeric_limits<float>::max() / log2e;
  while (!std::isinf(bias * log2e))
    bias = std::nextafter(bias, std::numeric_limits<float>::infinity());
  return bias;
}

Value ScoreChanges::capped(Value score, Value twoPerCap, Value cap) const {
  Value power = b.exp2(b.mulF(score, twoPerCap));
  Value tanh = b.fma(b.f32(-2), b.reciprocal(b.addF(power, b.f32(1))), b.f32(1));
  return b.mulF(tanh, cap);
}

/// Exponents have room for scales of V from the least on; smaller ones count as it.
Value ScoreChanges::atLeast(Value scaleOfValue) const {
  constexpr double least = 0x1p-60;
  return b.maxF(scaleOfValue, b.f32(least));
}

/// A scale of V for each key, loaded by the lane with the key's number.
Value ScoreChanges::lookUpScaleOfValue(const LaneRows &rows, Value tileKey) const {
  return atLeast(loadKeyScale(b, arguments, rows, keys, "v", tileKey));
}

/// Each score with its key's value, which the lane of the score's number has (byScore).
SmallVector<Value> ScoreChanges::eachByScore(ArrayRef<Value> blocks, Value ofKeys, ByScore combine) const {
  SmallVector<Value> results;
  unsigned number = 0;
  for (Value block : blocks) {
    auto type = cast<VectorType>(block.getType());
    SmallVector<Value> elements;
    for (unsigned r = 0; r < type.getNumElements(); ++r)
      elements.push_back(combine(b.extract(block, r), b.ofLaneOfRow(ofKeys, number++)));
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
    return SmallVector<Value>{b.addF(sums[0], sums[1])};
  };
  return b.branch(
      hasScales,
      [&] {
        Value inverse = b.reciprocal(atLeast(byScore(b, rows, loaded.v)));
        return inTwoChains(
            [&](unsigned n, Value p, Value sum) { return b.fma(b.ofLaneOfRow(inverse, n), p, sum); });
      },
      [&] { return inTwoChains([&](unsigned, Value p, Value sum) { return b.addF(sum, p); }); })[0];
}

Softmax::Denominator ScoreChanges::denominator(Value sum, ArrayRef<Value> blocks, Value offset, Value tileKey,
                                               MfmaLayout layout) const {
  Softmax::Denominator none{b.undef(b.getF32Type()), b.i32(0)};
  if (scaling != KeyScaling::LookUp) return none;
  SmallVector<Value> results = b.rarely(
      changed,
      [&] {
        Value scales = arguments.inLoop(tileKey).late("v_scales");
        return b.branch(
            b.isNull(scales), [&] { return SmallVector<Value>{none.sum, none.isGiven}; },
            [&] {
              LaneRows rows = locate(tileKey);
              Value inverse = b.reciprocal(lookUpScaleOfValue(rows, tileKey)), total = sum;
              Value first = b.mul(rows.laneGroup, b.i32(4));
              for (auto [index, block] : llvm::enumerate(blocks)) {
                for (unsigned r = 0; r < layout.results(); ++r) {
                  if (r % 4 == 0) first = b.after(first, total);
                  Value p = b.exp2(b.addF(b.extract(block, r), offset));
                  Value key = b.add(first, b.i32(layout.rows * index + layout.rowOf(r)));
                  total = b.fma(p, b.ofLane(inverse, key), total);
                }
              }
              return SmallVector<Value>{total, b.i32(1)};
            });
      },
      [&] { return SmallVector<Value>{none.sum, none.isGiven}; });
  return {results[0], results[1]};
}

ScoreChanges::Changed ScoreChanges::apply(ArrayRef<Value> raw, Value tileKey, Value isNeeded,
                                          MfmaLayout layout, Scores are, const TileScales *loaded) const {
  if (are == Scores::Zero) loaded = nullptr;
  SmallVector<Value> blocks(raw);
  Value ofScores = scaleLog2e;
  if (loaded) {
    ofScores = b.select(hasScales, b.f32(1), scaleLog2e);
    blocks = b.branch(
        hasScales,
        [&] {
          Value scale = b.behindProducts(b.opaque(scaleLog2e, tileKey)); // of the lane's row
          return eachByScore(raw, byScore(b, rows, loaded->k),
                             [&](Value score, Value ofKey) { return b.mulF(score, b.mulF(ofKey, scale)); });
        },
        [&] { return SmallVector<Value>(raw); });
  }
  auto accumulator = cast<VectorType>(blocks.front().getType());
  Value ofLane, head, row, rowGroup, lane;
  Value lastKey = b.maxS(b.sub(sequence.keys, b.i32(1)), b.i32(0));
  using Change = llvm::function_ref<Value(Value score, Value key)>;
  auto each = [&](ArrayRef<Value> scores, Change change) {
    SmallVector<Value> results;
    for (auto [index, block] : llvm::enumerate(scores)) {
      SmallVector<Value> elements;
      for (unsigned r = 0; r < layout.results(); ++r) {
        Value key = b.add(ofLane, b.i32(layout.rows * index + layout.rowOf(r)));
        elements.push_back(change(b.extract(block, r), key));
      }
      results.push_back(b.pack(accumulator, elements));
    }
    return results;
  };
  auto eachIf = [&](Value condition, ArrayRef<Value> scores, llvm::function_ref<SmallVector<Value>()> then) {
    return b.branch(condition, then, [&] { return SmallVector<Value>(scores); });
  };
  auto rowOf = [&](StringRef matrix) {
    Value offset = b.mul(b.zeroExtend(sequence.batch), arguments.late((matrix + "_batch_stride").str()));
    offset = b.add(offset, b.mul(b.zeroExtend(head), arguments.late((matrix + "_head_stride").str())));
    return b.add(offset, b.mul(b.zeroExtend(row), arguments.late((matrix + "_row_stride").str())));
  };

  auto change = [&] {
    Arguments ofTile = arguments.inLoop(tileKey);
    // An element of an array with one for each query head, or several such arrays.
    auto ofHead = [&](Value array, StringRef batchStride) -> Value {
      Value place = b.add(b.mul(b.zeroExtend(sequence.batch), ofTile.late(batchStride)), b.zeroExtend(head));
      return LLVM::LoadOp::create(b, b.getF32Type(), b.advance(array, b.getF32Type(), place),
                                  /*alignment=*/4);
    };
    // Located again after the scales, so that the rows' places do not take registers before.
    auto find = [&](Value changing) {
      LaneRows rows = locate(changing);
      ofLane = b.add(tileKey, b.mul(rows.laneGroup, b.i32(4)));
      head = rows.qHead;
      row = rows.token;
      rowGroup = rows.laneGroup;
      lane = rows.lane;
      return rows;
    };
    LaneRows rows = find(tileKey);
    // A matrix that has all keys of the tile is read in wide loads, except by waves of 16 rows: these gain
    // little, and with V in K they have no registers for the loaded values.
    Value isWhole = b.isFalse(b.less(sequence.keys, b.add(tileKey, b.i32(layout.rows * blocks.size()))));
    Value scale = b.behindProducts(b.opaque(ofScores, tileKey));
    // Each score with the value that the lane with its key's number has made: four at a time.
    auto eachOfKey = [&](ArrayRef<Value> scores, const LaneRows &rows, Value ofLanes,
                         llvm::function_ref<Value(Value score, Value ofKey)> combine) {
      Value first = b.mul(rows.laneGroup, b.i32(4)), last;
      unsigned number = 0;
      return each(scores, [&](Value score, Value) {
        if (number % 4 == 0 && last) first = b.after(first, last);
        unsigned block = number / layout.results(), r = number % layout.results();
        ++number;
        Value key = b.add(first, b.i32(layout.rows * block + layout.rowOf(r)));
        return last = combine(score, b.ofLane(ofLanes, key));
      });
    };
    auto scaled = [&] { return each(blocks, [&](Value score, Value) { return b.mulF(score, scale); }); };
    const bool looksForKeyScales = scaling == KeyScaling::LookUp && are != Scores::Zero;
    SmallVector<Value> scores =
        !looksForKeyScales ? scaled() : b.branch(b.isNull(ofTile.late("k_scales")), scaled, [&] {
          Value ofKey = loadKeyScale(b, arguments, rows, keys, "k", tileKey);
          return eachOfKey(blocks, rows, ofKey,
                           [&](Value score, Value ofScore) { return b.mulF(score, b.mulF(scale, ofScore)); });
        });
    if (looksForKeyScales) find(b.opaqueScalar(tileKey));
    Value cap = arguments.late("cap_log2e");
    scores = eachIf(b.isFalse(b.equalF(cap, b.f32(0))), scores, [&] {
      Value twoPerCap = arguments.late("two_per_cap");
      return each(scores, [&](Value score, Value) { return capped(score, twoPerCap, cap); });
    });
    // Without a key, there may be no memory of a bias or a mask.
    Value hasKeys = b.less(b.i32(0), sequence.keys);
    Value bias = arguments.late("bias");
    scores = eachIf(b.both(b.isFalse(b.isNull(bias)), hasKeys), scores, [&] {
      Value factors = ofTile.late("bias_scale");
      Value isDense = b.equal(arguments.late("bias_key_stride"), b.i64(1)); // else all keys share an element
      Value isWide = isPrefill(layout) ? b.both(isDense, isWhole) : b.boolean(false);
      Value log2e = b.f32(std::numbers::log2e), hasFactors = b.isFalse(b.isNull(factors));
      auto factor = [&] {
        return b.branch(
            hasFactors,
            [&] { return SmallVector<Value>{b.mulF(ofHead(factors, "bias_scale_batch_stride"), log2e)}; },
            [&] { return SmallVector<Value>{log2e}; })[0];
      };
      // Waves of 16 rows have no registers for this branch after those between the types.
      Value ofAllTypes = isPrefill(layout) ? Value() : factor();
      Value first = rowOf("bias"), none = b.f32(-std::numeric_limits<double>::infinity());
      auto biased = [&](ArrayRef<Value> values) {
        auto sums = [&](Value factor, bool hidesAll) {
          unsigned number = 0;
          return each(scores, [&](Value score, Value) {
            Value value = values[number++];
            Value sum = b.fma(value, factor, score);
            if (!hidesAll) return sum;
            return b.select(b.atMostF(value, b.f32(-infiniteBias())), none, sum);
          });
        };
        auto hiding = [&] { return sums(isPrefill(layout) ? factor() : ofAllTypes, true); };
        // A bias that is -infinity, in units of exponents, hides all scores. Without factors, the sum
        // achieves that for scores below 2^64, far less than the distance from the largest number to the
        // smallest such bias; larger scores are rare. While they are looked for, no register is left for a
        // factor.
        if (!isPrefill(layout)) return hiding();
        auto isLarge = [&] {
          if (are == Scores::Zero) return SmallVector<Value>{b.boolean(false)};
          Value rest = b.f32(0);
          each(scores, [&](Value score, Value) { return rest = b.fma(score, b.f32(0x1p64), rest); });
          return SmallVector<Value>{
              b.anyLane(arith::CmpFOp::create(b, arith::CmpFPredicate::UEQ, math::AbsFOp::create(b, rest),
                                              b.f32(std::numeric_limits<double>::infinity())))};
        };
        Value hides = b.branch(hasFactors, [&] { return SmallVector<Value>{b.boolean(true)}; }, isLarge)[0];
        return b.branch(hides, hiding, [&] { return sums(log2e, false); });
      };
      // Once for all types, since the code is long in prefill kernels; others have no registers for that.
      auto biasedOfType = [&](ArrayRef<Value> values) {
        return isPrefill(layout) ? SmallVector<Value>(values) : biased(values);
      };
      // Without this, LLVM computes the addresses that the types have in common before the branch between the
      // types: those of all scores at once.
      auto load = [&](Type type, llvm::function_ref<SmallVector<Value>(ArrayRef<Value>)> toFloats) {
        unsigned bytes = type.getIntOrFloatBitWidth() / 8;
        Value begin = b.opaque(ofLane, b.i32(bytes));
        Value ofRow = b.advance(bias, type, first);
        // Four neighbouring keys are one load. Eight rows at a time: lines of rows that are a power of two
        // apart share a few places of the cache, and those of 32 rows would be evicted before the next load.
        auto ofWhole = [&] {
          constexpr unsigned turns = 4;
          Value turn = b.bitAnd(b.shiftRight(lane, b.i32(3)), b.i32(turns - 1));
          Value ofKeys = b.advance(ofRow, type, b.zeroExtend(begin));
          auto four = VectorType::get(4, type);
          SmallVector<Value> fours(scores.size() * layout.results() / 4, b.undef(four));
          for (unsigned number = 0; number < turns; ++number) {
            ofKeys = b.opaque(ofKeys, b.i32(number)); // otherwise LLVM merges the loads of all turns
            fours = b.branch(
                b.equal(turn, b.i32(number)),
                [&] {
                  SmallVector<Value> loaded;
                  for (unsigned index = 0; index < fours.size(); ++index) {
                    Value place = b.advance(ofKeys, type, b.i64(index * 8));
                    loaded.push_back(LLVM::LoadOp::create(b, four, place, /*alignment=*/bytes));
                  }
                  return loaded;
                },
                [&] { return fours; });
          }
          return toFloats(fours);
        };
        auto ofEnd = [&] {
          SmallVector<Value> elements;
          Value from = begin;
          for (unsigned index = 0; index < scores.size(); ++index)
            for (unsigned r = 0; r < layout.results(); ++r) {
              // Without this, LLVM first puts the addresses of all scores in registers, then loads.
              if (r % 4 == 0) from = b.opaque(from);
              Value key = b.add(from, b.i32(layout.rows * index + layout.rowOf(r)));
              Value place = b.select(isDense, b.minS(key, lastKey), b.i32(0));
              Value address = b.advance(ofRow, type, b.zeroExtend(place));
              elements.push_back(LLVM::LoadOp::create(b, type, address, /*alignment=*/bytes));
            }
          return toFloats(elements);
        };
        return isPrefill(layout) ? b.branch(isWide, ofWhole, ofEnd) : ofEnd();
      };
      auto widened = [&](ArrayRef<Value> loaded, Type type) {
        SmallVector<Value> values;
        auto widen = [&](Value element) {
          values.push_back(arith::ExtFOp::create(b, b.getF32Type(), element));
        };
        for (Value element : loaded) {
          if (!isa<VectorType>(element.getType())) {
            widen(b.bitcast(type, element));
            continue;
          }
          Value words = b.bitcast(VectorType::get(2, b.getI32Type()), element);
          for (unsigned word = 0; word < 2; ++word) {
            // Without this, LLVM splits dwords into halves before the branch between the types.
            Value pair = b.bitcast(VectorType::get(2, type), b.opaque(b.extract(words, word)));
            widen(b.extract(pair, 0));
            widen(b.extract(pair, 1));
          }
        }
        return biasedOfType(values);
      };
      auto floats = [&](ArrayRef<Value> loaded) {
        SmallVector<Value> values;
        for (Value element : loaded) {
          auto four = dyn_cast<VectorType>(element.getType());
          for (unsigned n = 0; four && n < four.getNumElements(); ++n)
            values.push_back(b.extract(element, n));
          if (!four) values.push_back(element);
        }
        return biasedOfType(values);
      };
      Value isF16 = ofTile.flag(package::score_bias_f16), isBf16 = ofTile.flag(package::score_bias_bf16);
      SmallVector<Value> values = b.branch(
          b.either(isF16, isBf16),
          [&] {
            return load(b.getI16Type(), [&](ArrayRef<Value> elements) {
              return b.branch(
                  isF16, [&] { return widened(elements, b.getF16Type()); },
                  [&] { return widened(elements, b.getBF16Type()); });
            });
          },
          [&] { return load(b.getF32Type(), floats); });
      return isPrefill(layout) ? biased(values) : values;
    });
    Value slopes = arguments.late("alibi_slopes");
    scores = eachIf(b.isFalse(b.isNull(slopes)), scores, [&] {
      Value slope = b.mulF(ofHead(slopes, "alibi_batch_stride"), b.f32(-std::numbers::log2e));
      Value diagonal = b.add(row, shiftOf(b, ofTile, sequence));
      return each(scores, [&](Value score, Value key) {
        Value distance = b.maxS(b.sub(diagonal, key), b.sub(key, diagonal));
        Value length = arith::SIToFPOp::create(b, b.getF32Type(), distance);
        return b.fma(slope, length, score);
      });
    });
    Value mask = arguments.late("mask");
    scores = eachIf(b.both(b.isFalse(b.isNull(mask)), hasKeys), scores, [&] {
      Value ofRow = b.advance(mask, b.getI8Type(), rowOf("mask"));
      Value hidden = b.f32(-std::numeric_limits<double>::infinity());
      auto masked = [&](Value score, Value bit) { return b.select(b.equal(bit, b.i32(0)), hidden, score); };
      // A lane's bits of a block begin with those of its group.
      auto ofWords = [&](llvm::function_ref<Value(unsigned index)> wordOf) {
        SmallVector<Value> words;
        for (unsigned index = 0; index < scores.size(); ++index)
          words.push_back(b.shiftRight(wordOf(index), b.mul(rowGroup, b.i32(4))));
        unsigned number = 0;
        return each(scores, [&](Value score, Value) {
          unsigned block = number / layout.results(), r = number % layout.results();
          ++number;
          return masked(score, b.bitAnd(words[block], b.i32(int32_t(1u << layout.rowOf(r)))));
        });
      };
      auto ofWhole = [&] {
        Value begin = b.advance(ofRow, b.getI8Type(), b.zeroExtend(b.shiftRight(tileKey, b.i32(3))));
        return ofWords([&](unsigned index) -> Value {
          Value place = b.advance(begin, b.getI8Type(), b.i64(layout.rows * index / 8));
          return LLVM::LoadOp::create(b, b.getI32Type(), place, /*alignment=*/1);
        });
      };
      // The mask may begin at any key, if it covers only the newest, and ends with the last: byte by byte,
      // and keys before the first are visible.
      Value ofNewRows = ofTile.flag(package::score_mask_new_rows);
      Value firstKey = b.select(ofNewRows, b.sub(sequence.keys, sequence.rows), b.i32(0));
      auto ofBytes = [&] {
        Value lastByte = b.maxS(arith::ShRSIOp::create(b, b.sub(lastKey, firstKey), b.i32(3)), b.i32(0));
        return ofWords([&](unsigned index) -> Value {
          Value bit = b.sub(b.add(tileKey, b.i32(layout.rows * index)), firstKey);
          Value first = b.maxS(bit, b.i32(0)), firstByte = b.shiftRight(first, b.i32(3));
          SmallVector<Value> words(2, b.i32(0));
          for (unsigned n = 0; n < layout.rows / 8 + 1; ++n) {
            Value byte = b.minS(b.add(firstByte, b.i32(n)), lastByte);
            Value place = b.advance(ofRow, b.getI8Type(), b.zeroExtend(byte));
            Value loaded = LLVM::LoadOp::create(b, b.getI8Type(), place, /*alignment=*/1);
            Value bits = arith::ExtUIOp::create(b, b.getI32Type(), loaded);
            words[n / 4] = b.bitOr(words[n / 4], b.shiftLeft(bits, b.i32(8 * (n % 4))));
          }
          Value word = LLVM::FshrOp::create(b, words[1], words[0], b.bitAnd(first, b.i32(7)));
          Value before = b.clamp(b.sub(b.i32(0), bit), b.i32(0), b.i32(32));
          Value visible = b.sub(b.shiftLeft(b.i64(1), b.zeroExtend(before)), b.i64(1));
          Value moved = b.shiftLeft(b.zeroExtend(word), b.zeroExtend(before));
          return arith::TruncIOp::create(b, b.getI32Type(), b.bitOr(moved, visible));
        });
      };
      if (!isPrefill(layout)) return ofBytes();
      return b.branch(b.both(isWhole, b.isFalse(ofNewRows)), ofWhole, [&] {
        // Tiles of older keys only.
        Value end = b.add(tileKey, b.i32(layout.rows * blocks.size()));
        Value isOld = b.isFalse(b.less(firstKey, end));
        return b.branch(b.both(ofNewRows, isOld), [&] { return scores; }, ofBytes);
      });
    });
    if (looksForKeyScales)
      scores = eachIf(b.isFalse(b.isNull(ofTile.late("v_scales"))), scores, [&] {
        LaneRows ofValues = locate(b.opaqueScalar(b.opaqueScalar(tileKey)));
        Value exponent = b.log2(lookUpScaleOfValue(ofValues, tileKey));
        return eachOfKey(scores, ofValues, exponent,
                         [&](Value score, Value ofKey) { return b.addF(score, ofKey); });
      });
    if (isPrefill(layout)) {
      Value least = b.f32(std::numeric_limits<double>::infinity());
      each(scores, [&](Value score, Value) { return least = b.minF(least, score); });
      Value isHidden = b.anyLane(b.equalF(least, b.f32(-std::numeric_limits<double>::infinity())));
      scores.push_back(b.select(isHidden, b.i32(1), b.i32(0)));
    } else {
      scores.push_back(b.i32(0));
    }
    return scores;
  };
  SmallVector<Value> results = b.rarely(b.both(changed, isNeeded), change, [&] {
    SmallVector<Value> unchanged(blocks);
    unchanged.push_back(b.i32(0));
    return unchanged;
  });
  Value hidden = results.pop_back_val();
  if (!loaded) return {results, hidden};
  auto withValues = [&] {
    Value exponent = b.log2(atLeast(byScore(b, rows, loaded->v)));
    return eachByScore(results, exponent, [&](Value score, Value ofKey) { return b.addF(score, ofKey); });
  };
  return {b.branch(hasScales, withValues, [&] { return results; }), hidden};
}

} // namespace sluice
