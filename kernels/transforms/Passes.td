//===- Passes.td - passes over the sluice dialect ---------------------------------*- tablegen -*-===//
#ifndef SLUICE_TRANSFORMS_PASSES
#define SLUICE_TRANSFORMS_PASSES

include "mlir/Pass/PassBase.td"

def PipelineAsyncCopies : Pass<"pipeline-async-copies", "::mlir::gpu::GPUFuncOp"> {
  let summary = "overlap the copies of a loop with the work of earlier iterations";
  let options = [Option<"stages", "stages", "unsigned", /*default=*/"2", "LDS buffers per copied tile">];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect", "::sluice::SluiceDialect"];
}

def DistributeAsyncDma : Pass<"distribute-async-dma", "::mlir::gpu::GPUFuncOp"> {
  let summary = "turn workgroup-level copies into the direct-to-LDS loads of each wave";
  let options = [Option<"chip", "chip", "std::string", /*default=*/"\"gfx942\"", "chip of the chip table">];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::LLVM::LLVMDialect", "::mlir::ROCDL::ROCDLDialect",
                           "::mlir::vector::VectorDialect", "::sluice::SluiceDialect"];
}

def AnnotateLdsLiveness : Pass<"annotate-lds-liveness", "::mlir::gpu::GPUFuncOp"> {
  let summary = "mark where each LDS tile begins and ceases to be live";
  let dependentDialects = ["::sluice::SluiceDialect"];
}

def ReuseLds : Pass<"reuse-lds", "::mlir::gpu::GPUFuncOp"> {
  let summary = "give tiles that are never live together the same bytes of LDS";
  let options = [Option<"chip", "chip", "std::string", /*default=*/"\"gfx942\"", "chip of the chip table">];
  let dependentDialects = ["::sluice::SluiceDialect"];
}

def StageOutput : Pass<"stage-output", "::mlir::gpu::GPUFuncOp"> {
  let summary = "store the output tile through LDS in whole rows where LDS has room for it";
  let options = [Option<"chip", "chip", "std::string", /*default=*/"\"gfx942\"", "chip of the chip table">];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::LLVM::LLVMDialect",
                           "::mlir::ROCDL::ROCDLDialect", "::mlir::scf::SCFDialect", "::sluice::SluiceDialect"];
}

def SinkCopies : Pass<"sink-copies", "::mlir::gpu::GPUFuncOp"> {
  let summary = "move the copies of each wave into the branches that multiply";
}

def RaiseBarriers : Pass<"raise-barriers", "::mlir::gpu::GPUFuncOp"> {
  let summary = "move barriers up: into the branches that multiply before them, out of both sides of a branch";
}

def PeelUsualWay : Pass<"peel-usual-way", "::mlir::gpu::GPUFuncOp"> {
  let summary = "give the iterations of a loop that take no rare branch a copy of its body without branches";
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
}

def InterleaveMfma : Pass<"interleave-mfma", "::mlir::gpu::GPUFuncOp"> {
  let summary = "order each block so that vector instructions and LDS reads issue while the matrix core is busy";
  let options = [Option<"chip", "chip", "std::string", /*default=*/"\"gfx942\"", "chip of the chip table">];
}

#endif // SLUICE_TRANSFORMS_PASSES
