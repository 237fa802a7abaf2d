//===- ScoreChanges.cpp - what is done to scores before the softmax -------------------------------------===//
#include "attention/ScoreChanges.h"

#include "package/kernel_name.h"

#include <cmath>
#include <limits>
#include <numbers>

using namespace mlir;

namespace sluice {

ScoreChanges::ScoreChanges(Emitter &b, const Arguments &arguments, const LaneRows &rows, Locate locate)
    : b(b), arguments(arguments), sequence(rows.sequence), locate(std::move(locate)) {
  Value product =
      arguments.scaled(arguments["scale_log2e"], "q_scale", package::score_q_scale_heads, rows.qHead);
  product = arguments.scaled(product, "k_scale", package::score_k_scale_heads, rows.kvHead);
  // A hidden score is -infinity, and 0 times that would be NaN; the smallest number makes all others 0 too.
  scaleLog2e = b.select(b.equalF(product, b.f32(0)), b.f32(std::numeric_limits<float>::min()), product);
  changed = arguments.flag(package::score_changed);
  exponentFactor = b.select(changed, b.f32(1), scaleLog2e);
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

/// Element n of lane l becomes element (n & ~3 | q) of lane (l & ~12 | 4 * (n & 3)), where q is l / 4 % 4.
static void transposeFours(Emitter &b, MutableArrayRef<Value> elements) {
  Type type = elements.front().getType();
  auto words = VectorType::get(cast<VectorType>(type).getElementTypeBitWidth() / 8, b.getI32Type());
  for (unsigned bit = 0; bit < 2; ++bit) {
    int distance = 4 << bit;
    unsigned ofLow = bit == 0 ? 0b0101 : 0b0011, ofHigh = 0b1111 ^ ofLow;
    for (unsigned n = 0; n < elements.size(); ++n) {
      if (n >> bit & 1) continue;
      Value &even = elements[n], &odd = elements[n | 1u << bit];
      Value evens = b.bitcast(words, even), odds = b.bitcast(words, odd);
      SmallVector<Value> newEvens, newOdds;
      for (int word = 0; word < words.getNumElements(); ++word) {
        Value ofEven = b.extract(evens, word), ofOdd = b.extract(odds, word);
        newEvens.push_back(b.fromRow(ofEven, ofOdd, -distance, ofHigh));
        newOdds.push_back(b.fromRow(ofOdd, ofEven, distance, ofLow));
      }
      even = b.bitcast(type, b.pack(words, newEvens));
      odd = b.bitcast(type, b.pack(words, newOdds));
    }
  }
}

SmallVector<Value> ScoreChanges::apply(ArrayRef<Value> blocks, Value tileKey, MfmaLayout layout) const {
  auto accumulator = cast<VectorType>(blocks.front().getType());
  Value ofLane, head, row, rowGroup, lane, quarter;
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
    LaneRows rows = locate(tileKey);
    ofLane = b.add(tileKey, b.mul(rows.laneGroup, b.i32(4)));
    head = rows.qHead;
    row = rows.token;
    rowGroup = rows.laneGroup;
    lane = rows.lane;
    quarter = b.bitAnd(b.shiftRight(lane, b.i32(2)), b.i32(3));
    // A matrix that has all keys of the tile is read in wide loads; but not by waves of 16 rows, which gain
    // little, and with V in K have no registers for what they load.
    bool isTall = layout.rows == package::tall_rows_of_wave;
    Value isWhole = b.isFalse(b.less(sequence.keys, b.add(tileKey, b.i32(layout.rows * blocks.size()))));
    Value scale = b.opaque(scaleLog2e, tileKey);
    SmallVector<Value> scores = each(blocks, [&](Value score, Value) { return b.mulF(score, scale); });
    Value cap = arguments.late("cap_log2e");
    scores = eachIf(b.isFalse(b.equalF(cap, b.f32(0))), scores, [&] {
      Value twoPerCap = arguments.late("two_per_cap");
      return each(scores, [&](Value score, Value) { return capped(score, twoPerCap, cap); });
    });
    Value bias = arguments.late("bias");
    scores = eachIf(b.isFalse(b.isNull(bias)), scores, [&] {
      Value first = rowOf("bias"), none = b.f32(-std::numeric_limits<double>::infinity());
      Value isDense = b.equal(arguments.late("bias_key_stride"), b.i64(1)); // else all keys share an element
      Value isWide = isTall ? b.both(isDense, isWhole) : b.boolean(false);
      auto biased = [&](ArrayRef<Value> values) {
        unsigned number = 0;
        return each(scores, [&](Value score, Value) {
          Value value = values[number++];
          // A bias of -infinity hides, NaN as well.
          Value hides = b.atMostF(value, b.f32(-infiniteBias()));
          return b.select(hides, none, b.fma(value, b.f32(std::numbers::log2e), score));
        });
      };
      // Once for all types, whose code is long in tall kernels; others have no registers for it.
      auto biasedOfType = [&](ArrayRef<Value> values) {
        return isTall ? SmallVector<Value>(values) : biased(values);
      };
      // Left alone, LLVM computes the places that the types have in common in front of the branch between
      // them: those of all scores at once.
      auto load = [&](Type type, llvm::function_ref<SmallVector<Value>(ArrayRef<Value>)> toFloats) {
        unsigned bytes = type.getIntOrFloatBitWidth() / 8;
        Value begin = b.opaque(ofLane, b.i32(bytes));
        Value ofRow = b.advance(bias, type, first);
        // Four neighbouring keys are one load. Four lanes read the rows of all four one after another, whole
        // lines of them: lines of rows that are a power of two apart would not stay in the cache.
        auto ofWhole = [&] {
          Value ofQuarter = b.add(begin, b.mul(quarter, b.i32(8)));
          SmallVector<Value> ofRows, fours, elements;
          for (int other = 0; other < 4; ++other) {
            Value from = b.add(b.sub(lane, b.mul(quarter, b.i32(4))), b.i32(4 * other));
            ofRows.push_back(b.advance(b.pointerOfLane(ofRow, from), type, b.zeroExtend(ofQuarter)));
          }
          unsigned count = unsigned(scores.size()) * layout.results() / 4;
          for (unsigned index = 0; index < count; ++index) {
            Value place = b.advance(ofRows[index % 4], type, b.i64(index / 4 * 32));
            fours.push_back(LLVM::LoadOp::create(b, VectorType::get(4, type), place, /*alignment=*/bytes));
          }
          transposeFours(b, fours);
          for (Value four : fours)
            for (unsigned n = 0; n < 4; ++n)
              elements.push_back(b.extract(four, n));
          return toFloats(elements);
        };
        auto ofEnd = [&] {
          SmallVector<Value> elements;
          Value from = begin;
          for (unsigned index = 0; index < scores.size(); ++index)
            for (unsigned r = 0; r < layout.results(); ++r) {
              // Left alone, LLVM has the places of all scores in registers, then loads.
              if (r % 4 == 0) from = b.opaque(from);
              Value key = b.add(from, b.i32(layout.rows * index + layout.rowOf(r)));
              Value place = b.select(isDense, b.minS(key, lastKey), b.i32(0));
              Value address = b.advance(ofRow, type, b.zeroExtend(place));
              elements.push_back(LLVM::LoadOp::create(b, type, address, /*alignment=*/bytes));
            }
          return toFloats(elements);
        };
        return isTall ? b.branch(isWide, ofWhole, ofEnd) : ofEnd();
      };
      auto widened = [&](ArrayRef<Value> elements, Type type) {
        return biasedOfType(llvm::map_to_vector(elements, [&](Value element) -> Value {
          return arith::ExtFOp::create(b, b.getF32Type(), b.bitcast(type, element));
        }));
      };
      Value isF16 = arguments.flag(package::score_bias_f16),
            isBf16 = arguments.flag(package::score_bias_bf16);
      SmallVector<Value> values = b.branch(
          b.either(isF16, isBf16),
          [&] {
            return load(b.getI16Type(), [&](ArrayRef<Value> elements) {
              return b.branch(
                  isF16, [&] { return widened(elements, b.getF16Type()); },
                  [&] { return widened(elements, b.getBF16Type()); });
            });
          },
          [&] { return load(b.getF32Type(), biasedOfType); });
      return isTall ? biased(values) : values;
    });
    Value slopes = arguments.late("alibi_slopes");
    scores = eachIf(b.isFalse(b.isNull(slopes)), scores, [&] {
      Value place = b.advance(slopes, b.getF32Type(), b.zeroExtend(head));
      Value slope = b.mulF(LLVM::LoadOp::create(b, b.getF32Type(), place, /*alignment=*/4),
                           b.f32(-std::numbers::log2e));
      Value shift =
          b.select(arguments.flag(package::score_top_left), b.i32(0), b.sub(sequence.keys, sequence.rows));
      Value diagonal = b.add(row, shift);
      return each(scores, [&](Value score, Value key) {
        Value distance = b.maxS(b.sub(diagonal, key), b.sub(key, diagonal));
        Value length = arith::SIToFPOp::create(b, b.getF32Type(), distance);
        return b.fma(slope, length, score);
      });
    });
    Value mask = arguments.late("mask");
    return eachIf(b.isFalse(b.isNull(mask)), scores, [&] {
      Value ofRow = b.advance(mask, b.getI8Type(), rowOf("mask"));
      Value hidden = b.f32(-std::numeric_limits<double>::infinity());
      auto masked = [&](Value score, Value bit) { return b.select(b.equal(bit, b.i32(0)), hidden, score); };
      // The bits of a block's keys are one load; those of a lane begin with its group's.
      auto ofWhole = [&] {
        Value begin = b.advance(ofRow, b.getI8Type(), b.zeroExtend(b.shiftRight(tileKey, b.i32(3))));
        SmallVector<Value> words;
        for (unsigned index = 0; index < scores.size(); ++index) {
          Value place = b.advance(begin, b.getI8Type(), b.i64(layout.rows * index / 8));
          Value word = LLVM::LoadOp::create(b, b.getI32Type(), place, /*alignment=*/1);
          words.push_back(b.shiftRight(word, b.mul(rowGroup, b.i32(4))));
        }
        unsigned number = 0;
        return each(scores, [&](Value score, Value) {
          unsigned block = number / layout.results(), r = number % layout.results();
          ++number;
          return masked(score, b.bitAnd(words[block], b.i32(int32_t(1u << layout.rowOf(r)))));
        });
      };
      auto ofEnd = [&] {
        Value bits;
        unsigned number = 0;
        return each(scores, [&](Value score, Value key) {
          // Four neighbouring keys from a multiple of four on share a byte.
          if (number++ % 4 == 0) {
            Value byte = b.shiftRight(b.minS(key, lastKey), b.i32(3));
            Value place = b.advance(ofRow, b.getI8Type(), b.zeroExtend(byte));
            Value loaded = LLVM::LoadOp::create(b, b.getI8Type(), place, /*alignment=*/1);
            bits = arith::ExtUIOp::create(b, b.getI32Type(), loaded);
          }
          return masked(score, b.bitAnd(b.shiftRight(bits, b.bitAnd(key, b.i32(7))), b.i32(1)));
        });
      };
      return isTall ? b.branch(isWhole, ofWhole, ofEnd) : ofEnd();
    });
  };
  return b.branch(changed, change, [&] { return SmallVector<Value>(blocks); });
}

} // namespace sluice
