//===- Pipeline.cpp - the order of the passes ----------------------------------------------------------------===//
#include "tools/Pipeline.h"

#include "attention/Passes.h"
#include "lowering/Passes.h"
#include "transforms/Passes.h"

#include "mlir/Conversion/AMDGPUToROCDL/AMDGPUToROCDL.h"
#include "mlir/Conversion/GPUToROCDL/GPUToROCDLPass.h"
#include "mlir/Conversion/ReconcileUnrealizedCasts/ReconcileUnrealizedCasts.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

namespace sluice {

void buildKernelPipeline(OpPassManager &passes, const PipelineOptions &options) {
  OpPassManager &module = passes.nest<gpu::GPUModuleOp>();
  OpPassManager &kernel = module.nest<gpu::GPUFuncOp>();
  kernel.addPass(createBuildAttention());
  kernel.addPass(createPipelineAsyncCopies({options.stages}));
  kernel.addPass(createDistributeAsyncDma({options.chip}));
  kernel.addPass(createLowerAsyncMarks());
  module.addPass(createLowerToRocdl({options.chip}));

  module.addPass(createCanonicalizerPass());
  module.addPass(createCSEPass());
  module.addPass(createSCFToControlFlowPass());
  module.addPass(createConvertAMDGPUToROCDLPass({options.chip}));
  ConvertGpuOpsToROCDLOpsOptions rocdl;
  rocdl.chipset = options.chip;
  module.addPass(createConvertGpuOpsToROCDLOps(rocdl));
  module.addPass(createReconcileUnrealizedCastsPass());
}

void registerKernelPipeline() {
  static PassPipelineRegistration<> registration(
      "sluice-kernel-pipeline", "from sluice.attention to the LLVM and ROCDL dialects",
      [](OpPassManager &passes) { buildKernelPipeline(passes, {}); });
}

} // namespace sluice
