//===- Fp8Chunks.h - chunks of FP8 numbers, rounded once --------------------------------------*- C++ -*-===//
//
// To FP8: x / scale, rounded once, to nearest even. The F32 quotient q has an error of a few units, and
// rounding it again could go wrong at the midpoint between two FP8 numbers. So it is first rounded to 12
// bits, which represent every such midpoint; r = x - q * scale, whose sign is exact, then tells on which side
// of q the true quotient is, and q moves by one unit of F32 to that side: away from the midpoint if it is
// one, and past none. Both x and the scale are multiplied by the power of two that brings the scale below 1:
// scales may be subnormal, and r is exact for every x whose quotient is not rounded to 0. The chip's
// conversion rounds to nearest even; values beyond the largest number, including infinity, become this number
// first.
//
// From FP8: x * scale, rounded once. The F32 product p is rounded already, so the sum p + r with
// r = x * scale - p, which is exact, is rounded to F32 once more, towards 0, and an inexact result gets an
// odd last bit: then no rounding to fewer bits takes it for a midpoint.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "cache_ops/CacheOpEmitter.h"

#include <optional>

namespace sluice {

/// The FP8 types of CDNA3.
enum class Fp8 { e4m3fnuz, e4m3fn, e5m2 }; // both flavours of E5M2 end at the same number
double largestOf(Fp8 type);
/// By the name of a type.
std::optional<Fp8> fp8Of(llvm::StringRef name);

/// A chunk, of F32, and its divisor without their common power of two. The chip has no inverses of subnormal
/// scales, nor of those that have subnormal ones; of a mantissa it has.
struct Dividend {
  mlir::Value chunk, mantissa, inverse; // `inverse`: of the mantissa, with the chip's error
};
Dividend dividendOf(CacheOpEmitter &b, mlir::Value chunk, mlir::Value scale);

/// Numbers that round to the same numbers of up to 11 bits as the quotients: to the same FP8 numbers, and to
/// the same integers of 8 bits.
mlir::Value quotientsToRound(CacheOpEmitter &b, const Dividend &of);

/// Eight FP8 numbers in two words.
mlir::Value roundToFp8(CacheOpEmitter &b, mlir::Value chunk, Fp8 type);

/// Eight FP8 numbers in two words, from eight F32 numbers divided by scales[index]; as they are if `scales`
/// is null.
mlir::Value encodeFp8(CacheOpEmitter &b, mlir::Value wide, mlir::Value scales, mlir::Value index, Fp8 type);

/// A number that rounds to the same number of fewer bits as `rounded` + `rest`, which is less than half a
/// unit of `rounded`; and as x * scale.
mlir::Value sumToRound(CacheOpEmitter &b, mlir::Value rounded, mlir::Value rest);
mlir::Value productToRound(CacheOpEmitter &b, mlir::Value x, mlir::Value scale);

/// Eight F32 numbers: those in two words.
llvm::SmallVector<mlir::Value> numbersOfFp8(CacheOpEmitter &b, mlir::Value words, Fp8 type);

/// Eight F32 numbers as a chunk that rounds to the same numbers of fewer bits as their products with
/// scales[index]; as they are if `scales` is null.
mlir::Value productsToRound(CacheOpEmitter &b, llvm::ArrayRef<mlir::Value> numbers, mlir::Value scales,
                            mlir::Value index);

} // namespace sluice
