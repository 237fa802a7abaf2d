//===- Around.h - the kernels around attention as values --------------------------------------*- C++ -*-===//
#pragma once

#include "around/Variants.h"
#include "package/around_kernargs.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/BuiltinOps.h"

namespace sluice {

/// The kernel's arguments.
llvm::ArrayRef<package::KernargField> kernargFields(const AroundVariant &variant);

/// A module with one gpu.module and in it one kernel `name` in the arith, scf, vector and LLVM dialects.
mlir::OwningOpRef<mlir::ModuleOp> buildAroundModule(mlir::MLIRContext &context, llvm::StringRef name,
                                                    const AroundVariant &variant);

/// What is in the kernel.
void buildAppend(mlir::gpu::GPUFuncOp kernel, const AroundVariant &variant);
void buildMerge(mlir::gpu::GPUFuncOp kernel, const AroundVariant &variant);

} // namespace sluice
