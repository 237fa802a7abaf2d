//===- Pipeline.h - the order of the passes ---------------------------------------------------*- C++ -*-===//
#pragma once

#include "mlir/Pass/PassManager.h"

namespace sluice {

struct PipelineOptions {
  std::string chip = "gfx942";
  unsigned stages = 2;
};

/// From sluice.attention to the LLVM and ROCDL dialects, in the order that docs/concepts/pipeline.md
/// explains. At the boundary of the two halves, LDS tiles are still tiles and every copy is a direct-to-LDS
/// load.
void buildKernelPipeline(mlir::OpPassManager &passes, const PipelineOptions &options);
void buildTilePipeline(mlir::OpPassManager &passes, const PipelineOptions &options);
void buildLoweringPipeline(mlir::OpPassManager &passes, const PipelineOptions &options);
/// The end of the second half, on a gpu.module: upstream's dialects to LLVM and ROCDL. Kernels without tiles
/// need nothing else.
void buildConversionPipeline(mlir::OpPassManager &module, const PipelineOptions &options);

/// Registers the halves as `sluice-tile-pipeline` and `sluice-lowering-pipeline`.
void registerKernelPipelines();

} // namespace sluice
