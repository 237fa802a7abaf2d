//===- Passes.td - building the attention kernels ---------------------------------*- tablegen -*-===//
#ifndef SLUICE_ATTENTION_PASSES
#define SLUICE_ATTENTION_PASSES

include "mlir/Pass/PassBase.td"

def BuildAttention : Pass<"build-attention", "::mlir::gpu::GPUFuncOp"> {
  let summary = "expand sluice.attention into tiles, the KV loop, online softmax, MFMA fragments and copies";
  let options = [Option<"chip", "chip", "std::string", /*default=*/"\"gfx942\"", "chip of the chip table">];
  let dependentDialects = ["::mlir::amdgpu::AMDGPUDialect", "::mlir::arith::ArithDialect",
                           "::mlir::LLVM::LLVMDialect", "::mlir::math::MathDialect",
                           "::mlir::ROCDL::ROCDLDialect", "::mlir::scf::SCFDialect",
                           "::mlir::vector::VectorDialect", "::sluice::SluiceDialect"];
}

#endif // SLUICE_ATTENTION_PASSES
