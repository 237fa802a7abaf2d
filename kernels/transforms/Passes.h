//===- Passes.h - passes over the sluice dialect ----------------------------------------------*- C++ -*-===//
#pragma once

#include "dialect/Sluice.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/ROCDLDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Pass/Pass.h"

namespace sluice {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "transforms/Passes.h.inc"
} // namespace sluice
