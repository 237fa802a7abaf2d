//===- Kernel.h - the function around a sluice.attention op -----------------------------------*- C++ -*-===//
#pragma once

#include "attention/Variants.h"
#include "dialect/Sluice.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "package/kernargs.h"

namespace sluice {

/// A module with one gpu.module and in it one kernel without a body.
struct EmptyKernel {
  mlir::OwningOpRef<mlir::ModuleOp> module;
  mlir::gpu::GPUFuncOp kernel;
};
EmptyKernel createKernel(mlir::MLIRContext &context, llvm::StringRef name,
                         llvm::ArrayRef<package::KernargField> fields, unsigned threads);

/// A module with one gpu.module and in it one kernel `name` that holds only sluice.attention for `variant`.
/// Its parameters are the attention kernarg table.
mlir::OwningOpRef<mlir::ModuleOp> buildKernelModule(mlir::MLIRContext &context, llvm::StringRef name,
                                                    const AttentionVariant &variant, unsigned waveSize);

/// The types of the attention kernarg table, in order.
llvm::SmallVector<mlir::Type> attentionParameterTypes(mlir::MLIRContext &context);

} // namespace sluice
