//===- Widen.h - bytes of E4M3FNUZ to F16 or BF16 ---------------------------------------------*- C++ -*-===//
//
// Lossless: both have its exponents and its three bits of mantissa. Two elements take one v_cvt_pk_f32_fp8,
// and one more instruction to combine the two.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace sluice {

/// A vector of as many elements of `element`, which is f16 or bf16. `bytes`: 1, 2 or a multiple of 4 of them.
mlir::Value widenFp8(mlir::ImplicitLocOpBuilder &b, mlir::Value bytes, mlir::Type element);

} // namespace sluice
