//===- Passes.td - lowering the sluice dialect to ROCDL ---------------------------*- tablegen -*-===//
#ifndef SLUICE_LOWERING_PASSES
#define SLUICE_LOWERING_PASSES

include "mlir/Pass/PassBase.td"

def LowerAsyncMarks : Pass<"lower-async-marks", "::mlir::gpu::GPUFuncOp"> {
  let summary = "turn marks and waits for marks into exact vmcnt waits";
  let dependentDialects = ["::mlir::ROCDL::ROCDLDialect", "::mlir::LLVM::LLVMDialect"];
}

def LowerToRocdl : Pass<"lower-sluice-to-rocdl", "::mlir::gpu::GPUModuleOp"> {
  let summary = "turn LDS tiles, their reads and direct-to-LDS loads, and barriers into LLVM and ROCDL operations";
  let options = [Option<"chip", "chip", "std::string", /*default=*/"\"gfx942\"", "chip of the chip table">];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::ROCDL::ROCDLDialect",
                           "::mlir::LLVM::LLVMDialect"];
}

def LaunchToRuntime : Pass<"launch-to-runtime", "::mlir::ModuleOp"> {
  let summary = "turn launches with any number of async dependencies into calls of the launch runtime";
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::LLVM::LLVMDialect",
                           "::sluice::SluiceDialect"];
}

#endif // SLUICE_LOWERING_PASSES
