//===- IntegerChunks.cpp - chunks of integers of 8 and 4 bits -------------------------------------------===//
#include "cache_ops/IntegerChunks.h"

#include "cache_ops/Fp8Chunks.h"

#include <limits>

using namespace mlir;

namespace sluice {

namespace {

// Of F16.
constexpr double largestScale = 65504;

Value nearestEven(CacheOpEmitter &b, Value x) {
  return LLVM::RoundEvenOp::create(b, b.getF32Type(), x);
}

Value size(CacheOpEmitter &b, Value x) {
  return math::AbsFOp::create(b, x);
}

Value divide(CacheOpEmitter &b, Value x, Value y) {
  return arith::DivFOp::create(b, x, y);
}

/// 1 / x, or 0 where that is not finite.
Value inverseOrZero(CacheOpEmitter &b, Value x) {
  Value inverse = divide(b, b.f32(1), x);
  Value isFinite = b.atMostF(size(b, inverse), b.f32(std::numeric_limits<float>::max()));
  return b.select(isFinite, inverse, b.f32(0));
}

/// A value for each number of the chunk.
SmallVector<Value> each(CacheOpEmitter &b, Value chunk, function_ref<Value(Value)> make) {
  SmallVector<Value> made;
  for (unsigned i = 0; i < chunkElements; ++i)
    made.push_back(make(b.extract(chunk, i)));
  return made;
}

/// 1 / x, rounded to nearest, for an x of F16 that is not 0: the step from the chip's reciprocal ends at the
/// nearest number unless all bits of x are set (Markstein).
Value inverseOfF16(CacheOpEmitter &b, Value x) {
  Value first = b.reciprocal(x);
  return b.fma(b.fma(b.negF(x), first, b.f32(1)), first, first);
}

/// The lowest bytes of eight integers, in two words.
Value packBytes(CacheOpEmitter &b, ArrayRef<Value> integers) {
  SmallVector<Value> words;
  for (unsigned i = 0; i < chunkElements; i += 4) {
    // Selector 0x0c is a byte of zeros.
    Value low = b.permuteBytes(integers[i + 1], integers[i], 0x0c0c0400);
    Value high = b.permuteBytes(integers[i + 3], integers[i + 2], 0x04000c0c);
    words.push_back(b.bitOr(low, high));
  }
  return b.pack(VectorType::get(2, b.getI32Type()), words);
}

/// Joins the values of the four lanes of a block of ggml.
Value joinFour(CacheOpEmitter &b, Value value, CacheOpEmitter::Join join) {
  for (unsigned step = 0; step < 2; ++step)
    value = join(value, b.exchange(value, step));
  return value;
}

/// 0 with either sign if all numbers of the chunk are finite, else NaN.
Value zeroIfFinite(CacheOpEmitter &b, Value chunk) {
  // Two at a time, as the chip multiplies F32.
  Value zeros = b.pack(VectorType::get(2, b.getF32Type()), {b.f32(0), b.f32(0)}), sums = zeros;
  for (unsigned i = 0; i < chunkElements; i += 2)
    sums = b.fma(b.slice(chunk, i, 2), zeros, sums);
  return b.addF(b.extract(sums, 0), b.extract(sums, 1));
}

Value isNan(CacheOpEmitter &b, Value x) {
  return b.compareF(arith::CmpFPredicate::UNO, x, x);
}

/// The scale, or NaN if `zero`, of zeroIfFinite, is NaN.
Value orNan(CacheOpEmitter &b, Value scale, Value zero) {
  return b.select(isNan(b, zero), b.f32(std::numeric_limits<float>::quiet_NaN()), scale);
}

} // namespace

/// Integers in F32, limited, in two words.
static Value packI8(CacheOpEmitter &b, ArrayRef<Value> numbers) {
  constexpr int32_t largest = 127;
  SmallVector<Value> integers;
  for (Value number : numbers)
    integers.push_back(b.clamp(b.toInteger(number), b.i32(-largest), b.i32(largest)));
  return packBytes(b, integers);
}

Value roundToI8(CacheOpEmitter &b, Value chunk) {
  return packI8(b, each(b, chunk, [&](Value x) { return nearestEven(b, x); }));
}

Value divideToI8(CacheOpEmitter &b, Value chunk, Value scale) {
  // The quotients of a product with the chip's reciprocal are off by less than this up to 128: only those so
  // near to the middle between two integers need better ones.
  constexpr double error = 0x1p-14;
  Dividend dividend = dividendOf(b, chunk, scale);
  Value farthest = b.f32(0);
  SmallVector<Value> nearest = each(b, dividend.chunk, [&](Value x) {
    Value quotient = b.mulF(x, dividend.inverse), integer = nearestEven(b, quotient);
    farthest = b.maxF(farthest, size(b, b.subF(quotient, integer)));
    return integer;
  });
  return packI8(b, b.usually(
                       b.atMostF(farthest, b.f32(0.5 - error)), [&] { return nearest; },
                       [&] {
                         Value quotients = quotientsToRound(b, dividend);
                         return each(b, quotients, [&](Value x) { return nearestEven(b, x); });
                       }));
}

GroupedChunk toQ8(CacheOpEmitter &b, Value chunk) {
  auto add = [&](Value x, Value y) { return b.addF(x, y); };
  auto larger = [&](Value x, Value y) { return b.maxF(x, y); };
  Value most = b.f32(0);
  for (unsigned i = 0; i < chunkElements; ++i)
    most = b.maxF(most, size(b, b.extract(chunk, i)));
  Value zero = joinFour(b, zeroIfFinite(b, chunk), add);
  Value scale = orNan(b, divide(b, joinFour(b, most, larger), b.f32(127)), zero);
  Value inverse = inverseOrZero(b, scale);
  // The largest number below a half: with a half itself, 0.49999997 would become 1.
  Value half = b.f32(0x1.fffffep-2);
  SmallVector<Value> integers = each(b, chunk, [&](Value x) {
    Value quotient = b.mulF(x, inverse);
    return b.toInteger(b.addF(quotient, math::CopySignOp::create(b, half, quotient)));
  });
  return {b.round(b.getF16Type(), scale), {}, packBytes(b, integers)};
}

GroupedChunk toQ4(CacheOpEmitter &b, Value chunk, Value place) {
  // The first of the numbers with the largest size.
  auto larger = [&](Value first, Value second) {
    Value isLarger = b.compareF(arith::CmpFPredicate::OGT, size(b, second), size(b, first));
    return b.select(isLarger, second, first);
  };
  Value most = b.f32(0);
  for (unsigned i = 0; i < chunkElements; ++i)
    most = larger(most, b.extract(chunk, i));
  for (unsigned step = 0; step < 2; ++step) {
    Value other = b.exchange(most, step);
    Value isSecond = b.isFalse(b.equal(b.bitAnd(place, b.i32(1 << step)), b.i32(0)));
    most = larger(b.select(isSecond, other, most), b.select(isSecond, most, other));
  }
  Value zero = joinFour(b, zeroIfFinite(b, chunk), [&](Value x, Value y) { return b.addF(x, y); });
  Value scale = orNan(b, b.mulF(most, b.f32(-0.125)), zero);
  Value inverse = inverseOrZero(b, scale);
  SmallVector<Value> integers = each(b, chunk, [&](Value x) {
    return b.minS(b.toInteger(b.addF(b.mulF(x, inverse), b.f32(8.5))), b.i32(15));
  });
  Value own = packBytes(b, integers);
  SmallVector<Value> words;
  for (unsigned i = 0; i < 2; ++i) {
    Value word = b.extract(own, i);
    words.push_back(b.bitOr(word, b.shiftLeft(b.exchange(word, /*step=*/1), b.i32(4))));
  }
  return {b.round(b.getF16Type(), scale), {}, b.pack(VectorType::get(2, b.getI32Type()), words)};
}

GroupedChunk toU4(CacheOpEmitter &b, Value chunk, Value isWide, Value hasZero) {
  auto larger = [&](Value x, Value y) { return b.maxF(x, y); };
  auto add = [&](Value x, Value y) { return b.addF(x, y); };
  // The largest number, and the largest with the other sign.
  Value first = b.extract(chunk, 0);
  Value above = first, below = b.negF(first);
  for (unsigned i = 1; i < chunkElements; ++i) {
    above = b.maxF(above, b.extract(chunk, i));
    below = b.maxF(below, b.negF(b.extract(chunk, i)));
  }
  Value zero = joinFour(b, zeroIfFinite(b, chunk), add);
  above = joinFour(b, above, larger), below = joinFour(b, below, larger);
  std::tie(zero, above, below) = b.branch(
      isWide,
      [&] {
        constexpr unsigned step = 2;
        return std::tuple{add(zero, b.exchange(zero, step)), larger(above, b.exchange(above, step)),
                          larger(below, b.exchange(below, step))};
      },
      [&] { return std::tuple{zero, above, below}; });

  auto inF16 = [&](Value x) { return b.round(b.getF16Type(), x); };
  auto inF32 = [&](Value x) { return b.extend(b.getF32Type(), x); };
  auto limit = [&](Value x) { return b.minF(b.maxF(x, b.f32(-largestScale)), b.f32(largestScale)); };
  Value reach = b.select(hasZero, b.addF(above, below), b.maxF(above, below));
  Value steps = b.select(hasZero, b.f32(1.0f / 15), b.f32(1.0f / 7));
  Value exact = inF32(inF16(limit(b.mulF(reach, steps))));
  // Numbers that hardly differ are one number, which is the scale's 1 times what is subtracted from 0.
  constexpr double widest = 32768;
  Value isOne = b.either(b.equalF(exact, b.f32(0)),
                         b.both(hasZero, b.isFalse(b.atMostF(size(b, below), b.mulF(exact, b.f32(widest))))));
  Value scale = orNan(b, b.select(isOne, b.f32(1), exact), zero);
  Value inverse = inverseOfF16(b, scale);
  Value subtracted = inF16(orNan(b, b.select(hasZero, limit(b.mulF(below, inverse)), b.f32(8)), zero));
  Value offset = inF32(subtracted);
  auto pair = VectorType::get(2, b.getF32Type());
  Value inverses = b.pack(pair, {inverse, inverse}), offsets = b.pack(pair, {offset, offset}), word;
  for (unsigned i = chunkElements; i > 0; i -= 2) {
    Value quotients = b.fma(b.slice(chunk, i - 2, 2), inverses, offsets);
    for (unsigned n : {1, 0}) {
      Value rounded = nearestEven(b, b.extract(quotients, n));
      Value integer = b.clamp(b.toInteger(rounded), b.i32(0), b.i32(15));
      word = word ? b.bitOr(b.shiftLeft(word, b.i32(4)), integer) : integer;
    }
  }
  return {inF16(scale), subtracted, word};
}

SmallVector<Value> numbersOfI8(CacheOpEmitter &b, Value words) {
  SmallVector<Value> numbers;
  for (unsigned i = 0; i < chunkElements; ++i) {
    Value top = b.shiftLeft(b.extract(words, i / 4), b.i32(24 - 8 * (i % 4)));
    numbers.push_back(arith::SIToFPOp::create(b, b.getF32Type(), b.shiftRightSigned(top, b.i32(24))));
  }
  return numbers;
}

SmallVector<Value> numbersOfQ4(CacheOpEmitter &b, Value words, Value isUpper) {
  Value shift = b.select(isUpper, b.i32(4), b.i32(0));
  SmallVector<Value> numbers;
  for (unsigned i = 0; i < chunkElements; ++i) {
    Value place = b.add(shift, b.i32(8 * (i % 4)));
    Value integer = b.bitAnd(b.shiftRight(b.extract(words, i / 4), place), b.i32(15));
    numbers.push_back(arith::SIToFPOp::create(b, b.getF32Type(), b.sub(integer, b.i32(8))));
  }
  return numbers;
}

Value differencesOfU4(CacheOpEmitter &b, Value word, Value scale, Value zero) {
  Value subtracted = b.mulF(zero, scale);
  SmallVector<Value> differences;
  for (unsigned i = 0; i < chunkElements; ++i) {
    Value integer = b.bitAnd(b.shiftRight(word, b.i32(4 * i)), b.i32(15));
    Value product = b.mulF(arith::UIToFPOp::create(b, b.getF32Type(), integer), scale);
    // What rounding the difference loses (Knuth's two-sum).
    Value rounded = b.subF(product, subtracted), other = b.subF(rounded, product);
    Value rest = b.subF(b.subF(product, b.subF(rounded, other)), b.addF(subtracted, other));
    differences.push_back(sumToRound(b, rounded, rest));
  }
  return b.pack(b.chunkOf(b.getF32Type()), differences);
}

} // namespace sluice
