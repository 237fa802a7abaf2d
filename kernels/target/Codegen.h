//===- Codegen.h - LLVM dialect to a linked gfx9 code object ----------------------------------*- C++ -*-===//
#pragma once

#include "target/Chips.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "llvm/ADT/SmallVector.h"

namespace sluice {

struct CodegenOptions {
  const Chip &chip;
  unsigned wavesPerSimd; // resident waves the kernel is built for; bounds its registers
};

struct CodeObject {
  std::string llvmIr;             // after optimisation
  std::string assembly;           // the source that `elf` was assembled from
  llvm::SmallVector<char, 0> elf; // code object version 5, xnack and sramecc unspecified
};

/// Compiles a gpu.module in the LLVM and ROCDL dialects. Emits an error at the module and fails otherwise.
mlir::FailureOr<CodeObject> compileToCodeObject(mlir::gpu::GPUModuleOp module, const CodegenOptions &options);

/// Rebuilds `code.elf` from `code.assembly`. Emits an error with `emitError` and fails otherwise.
mlir::LogicalResult assembleAndLink(CodeObject &code, const Chip &chip,
                                    llvm::function_ref<mlir::InFlightDiagnostic()> emitError);

} // namespace sluice
