//===- CacheOps.h - the kernels of cache operations as values ---------------------------------*- C++ -*-===//
#pragma once

#include "cache_ops/Variants.h"
#include "package/cache_op_kernargs.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/BuiltinOps.h"

namespace sluice {

/// The kernel's arguments.
llvm::ArrayRef<package::KernargField> kernargFields(const CacheOpVariant &variant);

/// A module with one gpu.module and in it one kernel `name` in the arith, scf, vector and LLVM dialects.
mlir::OwningOpRef<mlir::ModuleOp> buildCacheOpModule(mlir::MLIRContext &context, llvm::StringRef name,
                                                     const CacheOpVariant &variant);

/// Build the kernel's body.
void buildAppend(mlir::gpu::GPUFuncOp kernel, const CacheOpVariant &variant);
void buildPageCopy(mlir::gpu::GPUFuncOp kernel, const CacheOpVariant &variant);
void buildAppendStep(mlir::gpu::GPUFuncOp kernel, const CacheOpVariant &variant);
void buildMerge(mlir::gpu::GPUFuncOp kernel, const CacheOpVariant &variant);

} // namespace sluice
