//===- Widen.h - bytes of E4M3FNUZ, E5M2FNUZ or integers to F16 or BF16 -----------------------*- C++ -*-===//
//
// Lossless: both have the exponents of the FP8 types and the bits of their mantissas, and eight significant
// bits for integers from -128 to 127. Two FP8 elements take one v_cvt_pk_f32_fp8 or _bf8, two integers two
// v_cvt_f32_i32, and both one more instruction to combine the two.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace sluice {

/// A vector of as many elements of `element`, which is f16 or bf16. `bytes`: 1, 2 or a multiple of 4 of them;
/// they are numbers of `type`: f8E4M3FNUZ or f8E5M2FNUZ; f8E4M3FN or f8E5M2, for chips whose conversions mean
/// these; or i8 for signed integers.
mlir::Value widenBytes(mlir::ImplicitLocOpBuilder &b, mlir::Value bytes, mlir::Type type, mlir::Type element);

} // namespace sluice
