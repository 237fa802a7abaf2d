//===- sluice-opt.cpp - run any pass of the kernel pipeline separately ----------------------------------===//
#include "attention/Passes.h"
#include "generate/Pipeline.h"
#include "lowering/Passes.h"
#include "transforms/Passes.h"

#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/InitAllPasses.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  mlir::registerAllDialects(registry);
  mlir::registerAllExtensions(registry);
  registry.insert<sluice::SluiceDialect>();
  mlir::registerAllPasses();
  sluice::registerSluiceAttentionPasses();
  sluice::registerSluiceTransformsPasses();
  sluice::registerSluiceLoweringPasses();
  sluice::registerKernelPipelines();
  return mlir::asMainReturnCode(mlir::MlirOptMain(argc, argv, "sluice kernel pipeline driver\n", registry));
}
