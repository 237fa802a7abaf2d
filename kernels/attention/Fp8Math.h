//===- Fp8Math.h - operands of FP8 products, made in registers --------------------------------*- C++ -*-===//
//
// E4M3FNUZ numbers are bytes, four to a dword, and an operand of an MFMA is eight of them: two dwords.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "attention/Emitter.h"

namespace sluice::fp8 {

/// P is at most 1, E4M3FNUZ numbers at most 240, and they are the more exact the further they are from 2^-10,
/// the smallest: exponentials are made this much larger, by their exponents.
constexpr double factorOfP = 128;

/// Eight probabilities as an operand, rounded to nearest even. NaN stays NaN.
mlir::Value fromProbabilities(Emitter &b, llvm::ArrayRef<mlir::Value> eight);

/// Eight rows of n bytes, n a multiple of 4 or 1, to n operands: the bytes of a column each.
llvm::SmallVector<mlir::Value> transpose(Emitter &b, llvm::ArrayRef<mlir::Value> rows);

/// The bits of 1 and of NaN, which is the only number that is not finite.
constexpr uint32_t one = 0x40, nan = 0x80;
/// The bytes of an operand that are NaN, as they are; 0 for the others.
mlir::Value nans(Emitter &b, mlir::Value operand);

} // namespace sluice::fp8
