//===- Pipeline.h - the order of the passes ---------------------------------------------------------*- C++ -*-===//
#pragma once

#include "mlir/Pass/PassManager.h"

namespace sluice {

struct PipelineOptions {
  std::string chip = "gfx942";
  unsigned stages = 2;
};

/// From sluice.attention to the LLVM and ROCDL dialects, in the order docs/concepts/pipeline.md explains.
void buildKernelPipeline(mlir::OpPassManager &passes, const PipelineOptions &options);

/// Makes the pipeline known as `sluice-kernel-pipeline`.
void registerKernelPipeline();

} // namespace sluice
