//===- Fp8Chunks.cpp - chunks of FP8 numbers, rounded once ----------------------------------------------===//
#include "cache_ops/Fp8Chunks.h"

#include "llvm/ADT/StringSwitch.h"

using namespace mlir;

namespace sluice {

namespace {

/// A number that rounds to the same number of up to 11 bits as x / scale.
Value quotientToRound(CacheOpEmitter &b, Value x, Value scale, Value inverse) {
  constexpr int32_t dropped = 12; // of the 24 bits of F32
  Value quotient = b.mulF(x, inverse);
  Value bits = b.bitcast(b.getI32Type(), quotient);
  Value roundedBits = b.bitAnd(b.add(bits, b.i32(1 << (dropped - 1))), b.i32(-(1 << dropped)));
  Value rounded = b.bitcast(b.getF32Type(), roundedBits);
  Value rest = b.fma(b.negF(rounded), scale, x);
  // One unit up if the rest has the sign of x, otherwise down; no change if the rest is 0 or NaN.
  Value differ = b.bitXor(b.bitcast(b.getI32Type(), rest), b.bitcast(b.getI32Type(), x));
  Value unit = b.bitOr(b.shiftRightSigned(differ, b.i32(31)), b.i32(1));
  Value isExact = b.isFalse(b.compareF(arith::CmpFPredicate::ONE, rest, b.f32(0)));
  Value moved = b.bitcast(b.getF32Type(), b.add(roundedBits, b.select(isExact, b.i32(0), unit)));
  return b.select(b.compareF(arith::CmpFPredicate::UNO, quotient, quotient), quotient, moved);
}

} // namespace

Value sumToRound(CacheOpEmitter &b, Value rounded, Value rest) {
  Value bits = b.bitcast(b.getI32Type(), rounded);
  // -1 if the number is too far from 0.
  Value towardsZero = b.shiftRightSigned(b.bitXor(b.bitcast(b.getI32Type(), rest), bits), b.i32(31));
  Value odd = b.bitOr(b.add(bits, towardsZero), b.i32(1));
  Value isInexact = b.compareF(arith::CmpFPredicate::ONE, rest, b.f32(0));
  return b.bitcast(b.getF32Type(), b.select(isInexact, odd, bits));
}

Value productToRound(CacheOpEmitter &b, Value x, Value scale) {
  Value product = b.mulF(x, scale);
  return sumToRound(b, product, b.fma(x, scale, b.negF(product)));
}

std::optional<Fp8> fp8Of(StringRef name) {
  return llvm::StringSwitch<std::optional<Fp8>>(name)
      .Case("e4m3fnuz", Fp8::e4m3fnuz)
      .Case("e4m3fn", Fp8::e4m3fn)
      .Cases({"e5m2fnuz", "e5m2"}, Fp8::e5m2)
      .Default(std::nullopt);
}

double largestOf(Fp8 type) {
  switch (type) {
  case Fp8::e4m3fnuz:
    return 240;
  case Fp8::e4m3fn:
    return 448;
  case Fp8::e5m2:
    return 57344;
  }
  llvm_unreachable("not a type of FP8");
}

Dividend dividendOf(CacheOpEmitter &b, Value chunk, Value scale) {
  Value mantissa = b.mantissaOf(scale), exponent = b.sub(b.i32(0), b.exponentOf(scale));
  SmallVector<Value> moved;
  for (unsigned i = 0; i < chunkElements; ++i)
    moved.push_back(b.timesPowerOf2(b.extract(chunk, i), exponent));
  return {b.pack(b.chunkOf(b.getF32Type()), moved), mantissa, b.reciprocal(mantissa)};
}

Value quotientsToRound(CacheOpEmitter &b, const Dividend &of) {
  SmallVector<Value> divided;
  for (unsigned i = 0; i < chunkElements; ++i)
    divided.push_back(quotientToRound(b, b.extract(of.chunk, i), of.mantissa, of.inverse));
  return b.pack(b.chunkOf(b.getF32Type()), divided);
}

Value roundToFp8(CacheOpEmitter &b, Value chunk, Fp8 type) {
  const double largest = largestOf(type);
  SmallVector<Value> limited, words;
  for (unsigned i = 0; i < chunkElements; ++i) {
    Value value = b.extract(chunk, i);
    Value within = b.minF(b.maxF(value, b.f32(-largest)), b.f32(largest));
    limited.push_back(b.select(b.compareF(arith::CmpFPredicate::UNO, value, value), value, within));
  }
  auto convert = [&](Value first, Value second, Value old, bool isHigh) -> Value {
    if (type == Fp8::e5m2) return ROCDL::CvtPkBf8F32Op::create(b, b.getI32Type(), first, second, old, isHigh);
    return ROCDL::CvtPkFp8F32Op::create(b, b.getI32Type(), first, second, old, isHigh);
  };
  for (unsigned i = 0; i < chunkElements; i += 4) {
    Value low = convert(limited[i], limited[i + 1], b.i32(0), /*isHigh=*/false);
    words.push_back(convert(limited[i + 2], limited[i + 3], low, /*isHigh=*/true));
  }
  return b.pack(VectorType::get(2, b.getI32Type()), words);
}

Value encodeFp8(CacheOpEmitter &b, Value wide, Value scales, Value index, Fp8 type) {
  Value quotients = b.branch(
      b.isNull(scales), [&] { return wide; },
      [&] {
        Value scale = b.load(b.getF32Type(), scales, index, 4);
        return quotientsToRound(b, dividendOf(b, wide, scale));
      });
  return roundToFp8(b, quotients, type);
}

SmallVector<Value> numbersOfFp8(CacheOpEmitter &b, Value words, Fp8 type) {
  auto two = VectorType::get(2, b.getF32Type());
  SmallVector<Value> wide;
  for (unsigned i = 0; i < chunkElements; i += 2) {
    Value word = b.extract(words, i / 4), pair;
    const bool isHigh = i % 4 != 0;
    if (type == Fp8::e5m2)
      pair = ROCDL::CvtPkF32Bf8Op::create(b, two, word, isHigh);
    else
      pair = ROCDL::CvtPkF32Fp8Op::create(b, two, word, isHigh);
    wide.append({b.extract(pair, 0), b.extract(pair, 1)});
  }
  return wide;
}

Value productsToRound(CacheOpEmitter &b, ArrayRef<Value> numbers, Value scales, Value index) {
  auto eight = b.chunkOf(b.getF32Type());
  return b.branch(
      b.isNull(scales), [&] { return b.pack(eight, numbers); },
      [&] {
        Value scale = b.load(b.getF32Type(), scales, index, 4);
        SmallVector<Value> multiplied;
        for (Value value : numbers)
          multiplied.push_back(productToRound(b, value, scale));
        return b.pack(eight, multiplied);
      });
}

} // namespace sluice
