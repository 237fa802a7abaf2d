//===- Transpose.h - four rows of bytes or halves to columns ----------------------------------*- C++ -*-===//
#pragma once

#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace sluice {

/// Four dwords, whose bytes are four rows, to the dwords of the columns: eight v_perm_b32.
llvm::SmallVector<mlir::Value> transposeBytes(mlir::ImplicitLocOpBuilder &b,
                                              llvm::ArrayRef<mlir::Value> rows);

/// Four dwords, whose halves are four rows, to vectors of the two dwords of each column: four v_perm_b32.
llvm::SmallVector<mlir::Value> transposeHalves(mlir::ImplicitLocOpBuilder &b,
                                               llvm::ArrayRef<mlir::Value> rows);

} // namespace sluice
