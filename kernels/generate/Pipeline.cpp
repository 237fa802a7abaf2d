//===- Pipeline.cpp - the order of the passes -----------------------------------------------------------===//
#include "generate/Pipeline.h"

#include "attention/Passes.h"
#include "lowering/Passes.h"
#include "transforms/Passes.h"

#include "mlir/Conversion/GPUToROCDL/GPUToROCDLPass.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

namespace sluice {

void buildTilePipeline(OpPassManager &passes, const PipelineOptions &options) {
  OpPassManager &kernel = passes.nest<gpu::GPUModuleOp>().nest<gpu::GPUFuncOp>();
  kernel.addPass(createBuildAttention({options.chip}));
  kernel.addPass(createPipelineAsyncCopies({options.stages}));
  kernel.addPass(createAnnotateLdsLiveness());
  kernel.addPass(createReuseLds({options.chip}));
  // Staging needs to know how much LDS is in use without it, and adds one more tile to place.
  kernel.addPass(createStageOutput({options.chip}));
  kernel.addPass(createAnnotateLdsLiveness());
  kernel.addPass(createReuseLds({options.chip}));
  kernel.addPass(createDistributeAsyncDma({options.chip}));
  kernel.addPass(createSinkCopies());
  kernel.addPass(createRaiseBarriers());
  kernel.addPass(createPeelUsualWay());
  kernel.addPass(createInterleaveMfma({options.chip}));
}

void buildLoweringPipeline(OpPassManager &passes, const PipelineOptions &options) {
  OpPassManager &module = passes.nest<gpu::GPUModuleOp>();
  module.nest<gpu::GPUFuncOp>().addPass(createLowerAsyncMarks());
  module.addPass(createLowerToRocdl({options.chip}));
  buildConversionPipeline(module, options);
}

void buildConversionPipeline(OpPassManager &module, const PipelineOptions &options) {
  module.addPass(createCanonicalizerPass());
  module.addPass(createSCFToControlFlowPass());
  // Also converts the rest of the AMDGPU dialect.
  ConvertGpuOpsToROCDLOpsOptions rocdl;
  rocdl.chipset = options.chip;
  module.addPass(createConvertGpuOpsToROCDLOps(rocdl));
}

void buildKernelPipeline(OpPassManager &passes, const PipelineOptions &options) {
  buildTilePipeline(passes, options);
  buildLoweringPipeline(passes, options);
}

void registerKernelPipelines() {
  static PassPipelineRegistration<> tile("sluice-tile-pipeline",
                                         "from sluice.attention to direct-to-LDS loads, marks and waits",
                                         [](OpPassManager &passes) { buildTilePipeline(passes, {}); });
  static PassPipelineRegistration<> lowering(
      "sluice-lowering-pipeline", "from there to the LLVM and ROCDL dialects",
      [](OpPassManager &passes) { buildLoweringPipeline(passes, {}); });
}

} // namespace sluice
