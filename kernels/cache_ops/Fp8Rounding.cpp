//===- Fp8Rounding.cpp - quotients as FP8, rounded once -------------------------------------------------===//
#include "cache_ops/Fp8Rounding.h"

using namespace mlir;

namespace sluice {

namespace {

Value quotientForFp8(CacheOpEmitter &b, Value x, Value scale, Value inverse) {
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

Value quotientsForFp8(CacheOpEmitter &b, Value chunk, Value scale) {
  Value inverse = b.reciprocal(scale);
  SmallVector<Value> divided;
  for (unsigned i = 0; i < package::cache_op_chunk_elements; ++i)
    divided.push_back(quotientForFp8(b, b.extract(chunk, i), scale, inverse));
  return b.pack(b.chunkOf(b.getF32Type()), divided);
}

double largestOf(Fp8 type) {
  return type == Fp8::e4m3 ? 240 : 57344;
}

Value roundToFp8(CacheOpEmitter &b, Value chunk, Fp8 type) {
  const double largest = largestOf(type);
  SmallVector<Value> limited, words;
  for (unsigned i = 0; i < package::cache_op_chunk_elements; ++i) {
    Value value = b.extract(chunk, i);
    Value within = b.minF(b.maxF(value, b.f32(-largest)), b.f32(largest));
    limited.push_back(b.select(b.compareF(arith::CmpFPredicate::UNO, value, value), value, within));
  }
  auto convert = [&](Value first, Value second, Value old, bool isHigh) -> Value {
    if (type == Fp8::e4m3) return ROCDL::CvtPkFp8F32Op::create(b, b.getI32Type(), first, second, old, isHigh);
    return ROCDL::CvtPkBf8F32Op::create(b, b.getI32Type(), first, second, old, isHigh);
  };
  for (unsigned i = 0; i < package::cache_op_chunk_elements; i += 4) {
    Value low = convert(limited[i], limited[i + 1], b.i32(0), /*isHigh=*/false);
    words.push_back(convert(limited[i + 2], limited[i + 3], low, /*isHigh=*/true));
  }
  return b.pack(VectorType::get(2, b.getI32Type()), words);
}

} // namespace sluice
