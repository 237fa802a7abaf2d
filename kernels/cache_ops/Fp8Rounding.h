//===- Fp8Rounding.h - quotients as FP8, rounded once -----------------------------------------*- C++ -*-===//
//
// FP8 is x / scale rounded once, to nearest even. The F32 quotient q has an error of a few units, and
// rounding it again could go wrong at the midpoint between two FP8 numbers. So it is first rounded to 12
// bits, which represent every such midpoint; r = x - q * scale, whose sign is exact, then tells on which side
// of q the true quotient is, and q moves by one unit of F32 to that side: away from the midpoint if it is
// one, and past none. The chip's conversion rounds to nearest even; values beyond the largest number,
// including infinity, become this number first.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "cache_ops/CacheOpEmitter.h"

namespace sluice {

/// Numbers that round to the same FP8 numbers as those of the chunk, of F32, divided by the scale.
mlir::Value quotientsForFp8(CacheOpEmitter &b, mlir::Value chunk, mlir::Value scale);

/// The FP8 types of CDNA3.
enum class Fp8 { e4m3, e5m2 };
double largestOf(Fp8 type);

/// Eight FP8 numbers in two words.
mlir::Value roundToFp8(CacheOpEmitter &b, mlir::Value chunk, Fp8 type);

} // namespace sluice
