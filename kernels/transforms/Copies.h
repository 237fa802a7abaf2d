//===- Copies.h - the operations of a wave's copies -------------------------------------------*- C++ -*-===//
#pragma once

#include "dialect/Sluice.h"
#include "mlir/Dialect/AMDGPU/IR/AMDGPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/ROCDLDialect.h"

namespace sluice {

/// Marks the loads and LDS writes of copies through registers.
inline constexpr llvm::StringLiteral halfOfCopy = "sluice.half_of_copy";

inline bool isCopy(mlir::Operation *op) {
  return mlir::isa<LoadToLdsOp, GatherToLdsOp>(op) || op->hasAttr(halfOfCopy);
}

/// CopyBuilder::inOrder: a value that is not known before this point.
inline bool isInOrder(mlir::Operation *op) {
  auto assembly = mlir::dyn_cast<mlir::LLVM::InlineAsmOp>(op);
  return assembly && assembly.getHasSideEffects() && assembly.getAsmString().empty();
}

/// Copies and the operations between them that keep a fixed order.
inline bool isOfCopies(mlir::Operation *op) {
  return isCopy(op) || mlir::isa<AsyncMarkOp>(op) || isInOrder(op);
}

/// A value that LLVM does not trace; its position is not fixed.
inline bool isOpaque(mlir::Operation *op) {
  auto assembly = mlir::dyn_cast<mlir::LLVM::InlineAsmOp>(op);
  return assembly && !assembly.getHasSideEffects() && assembly.getAsmString().empty();
}

/// MLIR does not know that exchanging values between lanes accesses no memory.
inline bool computesOnly(mlir::Operation *op) {
  return mlir::isPure(op) ||
         mlir::isa<mlir::ROCDL::DsBpermuteOp, mlir::ROCDL::ReadfirstlaneOp, mlir::ROCDL::ReadlaneOp>(op);
}

/// The branch has MFMAs outside loops; loops are for rare cases.
inline bool multiplies(mlir::scf::IfOp branch) {
  return branch
      ->walk<mlir::WalkOrder::PreOrder>([](mlir::Operation *op) {
        if (mlir::isa<mlir::LoopLikeOpInterface>(op)) return mlir::WalkResult::skip();
        return mlir::isa<mlir::amdgpu::MFMAOp>(op) ? mlir::WalkResult::interrupt()
                                                   : mlir::WalkResult::advance();
      })
      .wasInterrupted();
}

} // namespace sluice
