//===- Decisions.h - what the passes decided about a kernel -----------------------------------*- C++ -*-===//
//
// Passes leave their decisions on the kernel as discardable attributes `sluice.*`, which stay until the end
// of the pipeline:
//
//   sluice.pipeline = [{stages = 2, groups = [...]}, ...]                        one per pipelined loop
//   sluice.lds = {arena_bytes = 65536, bytes_without_reuse = 98304, tiles = [...]}
//
// Any other attribute is shown unchanged.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "mlir/Dialect/GPU/IR/GPUDialect.h"

#include <string>
#include <vector>

namespace sluice {

struct Decisions {
  unsigned stages = 0;                 // of the deepest pipeline; 0 if no loop is pipelined
  std::vector<std::string> copyGroups; // of all pipelined loops, in order
  unsigned ldsBytes = 0;
  unsigned ldsBytesWithoutReuse = 0;
};

/// Reads a module with one kernel in the LLVM and ROCDL dialects.
Decisions readDecisions(mlir::gpu::GPUModuleOp module);

/// Bytes of the static LDS arrays.
unsigned staticLdsBytes(mlir::gpu::GPUModuleOp module);

/// All `sluice.*` attributes of the kernels, then the map of LDS, as text.
void printDecisions(mlir::gpu::GPUModuleOp module, llvm::raw_ostream &out);

} // namespace sluice
