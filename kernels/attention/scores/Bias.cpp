//===- Bias.cpp - a matrix that is added to scores ------------------------------------------------------===//
//
// A bias is read where it is used: that of a whole tile by four lanes for the rows of all four. Keys and rows
// past the ends read the values of the last; the results are hidden or not stored.
//
//===----------------------------------------------------------------------------------------------------===//
#include "attention/scores/ScoreTile.h"

#include <cmath>
#include <limits>
#include <numbers>

using namespace mlir;

namespace sluice {

namespace {

/// The smallest bias that is infinite in units of the base-2 exponent.
float infiniteBias() {
  constexpr auto log2e = std::numbers::log2e_v<float>;
  float bias = std::numeric_limits<float>::max() / log2e;
  while (!std::isinf(bias * log2e))
    bias = std::nextafter(bias, std::numeric_limits<float>::infinity());
  return bias;
}

class BiasOfTile {
public:
  BiasOfTile(const ScoreTile &tile, ArrayRef<Value> scores, Value bias)
      : tile(tile), b(tile.b), scores(scores), bias(bias), factors(tile.inLoop.late("bias_scale")),
        isDense(b.equal(tile.arguments.late("bias_key_stride"), b.i64(1))),
        // A matrix that has all keys of the tile is read in wide loads, except by waves of 16 rows: these
        // gain little, and with V in K they have no registers for the loaded values.
        isWide(tile.isPrefill() ? b.both(isDense, tile.isWhole) : b.boolean(false)),
        log2e(b.f32(std::numbers::log2e)), hasFactors(b.isFalse(b.isNull(factors))),
        // Waves of 16 rows have no registers for this branch after those between the types.
        sharedFactor(tile.isPrefill() ? Value() : factor()), first(tile.rowOf("bias")),
        none(b.f32(-std::numeric_limits<double>::infinity())) {}

  Scores apply() const {
    Value isF16 = tile.inLoop.flag(package::score_bias_f16);
    Value isBf16 = tile.inLoop.flag(package::score_bias_bf16);
    Scores values = b.branch(
        b.either(isF16, isBf16),
        [&] {
          return load(b.getI16Type(), [&](ArrayRef<Value> elements) {
            return b.branch(
                isF16, [&] { return widened(elements, b.getF16Type()); },
                [&] { return widened(elements, b.getBF16Type()); });
          });
        },
        [&] { return load(b.getF32Type(), [&](ArrayRef<Value> elements) { return floats(elements); }); });
    return tile.isPrefill() ? biased(values) : values;
  }

private:
  /// Of bias values, in units of exponents.
  Value factor() const {
    return b.branch(
        hasFactors, [&] { return b.mulF(tile.headElement(factors, "bias_scale_batch_stride"), log2e); },
        [&] { return log2e; });
  }

  Scores sums(ArrayRef<Value> values, Value factor, bool hidesAll) const {
    unsigned number = 0;
    return tile.each(scores, [&](Value score, Value) {
      Value value = values[number++];
      Value sum = b.fma(value, factor, score);
      if (!hidesAll) return sum;
      return b.select(b.atMostF(value, b.f32(-infiniteBias())), none, sum);
    });
  }

  Scores biased(ArrayRef<Value> values) const {
    auto hiding = [&] { return sums(values, tile.isPrefill() ? factor() : sharedFactor, true); };
    // A bias that is -infinity, in units of exponents, hides all scores. Without factors, the sum achieves
    // that for scores below 2^64, far less than the distance from the largest number to the smallest such
    // bias; larger scores are rare. While they are looked for, no register is left for a factor.
    if (!tile.isPrefill()) return hiding();
    auto isLarge = [&] {
      if (tile.areZero) return b.boolean(false);
      Value rest = b.f32(0);
      tile.each(scores, [&](Value score, Value) { return rest = b.fma(score, b.f32(0x1p64), rest); });
      return b.anyLane(arith::CmpFOp::create(b, arith::CmpFPredicate::UEQ, math::AbsFOp::create(b, rest),
                                             b.f32(std::numeric_limits<double>::infinity())));
    };
    Value hides = b.branch(hasFactors, [&] { return b.boolean(true); }, isLarge);
    return b.branch(hides, hiding, [&] { return sums(values, log2e, false); });
  }

  /// Once for all types, since the code is long in prefill kernels; others have no registers for that.
  Scores biasedOfType(ArrayRef<Value> values) const {
    return tile.isPrefill() ? Scores(values) : biased(values);
  }

  using ToFloats = llvm::function_ref<Scores(ArrayRef<Value>)>;
  /// Loads the values of the lane's row, and converts them in each branch.
  Scores load(Type type, ToFloats toFloats) const {
    // Without this, LLVM computes the addresses that the types have in common before the branch between the
    // types: those of all scores at once.
    Value begin = b.opaque(tile.place.firstKey, b.i32(type.getIntOrFloatBitWidth() / 8));
    Value biasRow = b.advance(bias, type, first);
    auto wholeTile = [&] { return toFloats(loadWhole(type, biasRow, begin)); };
    auto lastTile = [&] { return toFloats(loadEach(type, biasRow, begin)); };
    return tile.isPrefill() ? b.branch(isWide, wholeTile, lastTile) : lastTile();
  }

  /// Four neighbouring keys are one load. Eight rows at a time: lines of rows that are a power of two apart
  /// share a few places of the cache, and those of 32 rows would be evicted before the next load.
  Scores loadWhole(Type type, Value biasRow, Value begin) const {
    constexpr unsigned turns = 4;
    Value turn = b.bitAnd(b.shiftRight(tile.place.lane, b.i32(3)), b.i32(turns - 1));
    Value tileBias = b.advance(biasRow, type, b.zeroExtend(begin));
    auto four = VectorType::get(4, type);
    Scores fours(scores.size() * tile.layout.results() / 4, b.undef(four));
    for (unsigned number = 0; number < turns; ++number) {
      tileBias = b.opaque(tileBias, b.i32(number)); // otherwise LLVM merges the loads of all turns
      fours = b.branch(
          b.equal(turn, b.i32(number)),
          [&] {
            Scores loaded;
            for (unsigned index = 0; index < fours.size(); ++index) {
              Value place = b.advance(tileBias, type, b.i64(index * 8));
              loaded.push_back(
                  LLVM::LoadOp::create(b, four, place, /*alignment=*/type.getIntOrFloatBitWidth() / 8));
            }
            return loaded;
          },
          [&] { return fours; });
    }
    return fours;
  }

  Scores loadEach(Type type, Value biasRow, Value begin) const {
    Scores elements;
    Value from = begin;
    for (unsigned index = 0; index < scores.size(); ++index)
      for (unsigned r = 0; r < tile.layout.results(); ++r) {
        // Without this, LLVM first puts the addresses of all scores in registers, then loads.
        if (r % 4 == 0) from = b.opaque(from);
        Value key = b.add(from, b.i32(tile.layout.rows * index + tile.layout.rowOf(r)));
        // If the matrix is not dense, all keys share an element.
        Value place = b.select(isDense, b.minS(key, tile.lastKey), b.i32(0));
        Value address = b.advance(biasRow, type, b.zeroExtend(place));
        elements.push_back(
            LLVM::LoadOp::create(b, type, address, /*alignment=*/type.getIntOrFloatBitWidth() / 8));
      }
    return elements;
  }

  Scores widened(ArrayRef<Value> loaded, Type type) const {
    Scores values;
    auto widen = [&](Value element) { values.push_back(arith::ExtFOp::create(b, b.getF32Type(), element)); };
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
  }

  Scores floats(ArrayRef<Value> loaded) const {
    Scores values;
    for (Value element : loaded) {
      auto four = dyn_cast<VectorType>(element.getType());
      for (unsigned n = 0; four && n < four.getNumElements(); ++n)
        values.push_back(b.extract(element, n));
      if (!four) values.push_back(element);
    }
    return biasedOfType(values);
  }

  const ScoreTile &tile;
  Emitter &b;
  ArrayRef<Value> scores;
  Value bias, factors, isDense, isWide, log2e, hasFactors, sharedFactor, first, none;
};

Asked askBias(const ScoreTile &tile) {
  return askMatrix(tile, "bias");
}

Scores applyBias(const ScoreTile &tile, ArrayRef<Value> scores, Value bias) {
  return BiasOfTile(tile, scores, bias).apply();
}

} // namespace

const ScoreChange bias = {askBias, applyBias};

} // namespace sluice
