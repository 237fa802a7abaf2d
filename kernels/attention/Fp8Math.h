//===- Fp8Math.h - operands of FP8 products, made in registers --------------------------------*- C++ -*-===//
//
// E4M3FNUZ numbers are bytes, four to a dword, and an operand of an MFMA is eight of them: two dwords.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "attention/Emitter.h"

namespace sluice::fp8 {

/// P is at most 1, E4M3FNUZ numbers at most 240, and precision grows with the distance from 2^-10, the
/// smallest of them: exponentials are made this much larger, through their exponents.
constexpr double factorOfP = 128;

/// Eight probabilities as an operand, rounded to nearest even. NaN stays NaN.
mlir::Value fromProbabilities(Emitter &b, llvm::ArrayRef<mlir::Value> eight);

/// F32 numbers as a vector of bytes, rounded to nearest even and limited to the largest E4M3FNUZ number. NaN
/// stays NaN. One number, two, or a multiple of four.
mlir::Value rounded(Emitter &b, llvm::ArrayRef<mlir::Value> numbers);

/// Eight rows of n bytes, n a multiple of 4 or 1, to n operands, each the bytes of one column.
llvm::SmallVector<mlir::Value> transpose(Emitter &b, llvm::ArrayRef<mlir::Value> rows);

/// The bits of 1 and of NaN, the only number that is not finite.
constexpr uint32_t one = 0x40, nan = 0x80;
/// The NaN bytes of an operand, unchanged; 0 in place of the others.
mlir::Value nans(Emitter &b, mlir::Value operand);

} // namespace sluice::fp8
