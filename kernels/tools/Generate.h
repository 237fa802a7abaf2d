//===- Generate.h - variants to machine code and packs ------------------------------------------------*- C++
//-*-===//
#pragma once

#include "attention/Variants.h"
#include "target/Codegen.h"
#include "tools/Pipeline.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"

namespace sluice {

/// The variant's name by the grammar of package/kernel_name.h; also the kernel's symbol.
std::string kernelName(const AttentionVariant &variant);

class Generator {
public:
  explicit Generator(PipelineOptions options);

  /// One kernel at a stage: "input" (sluice.attention), "mlir" (LLVM and ROCDL dialects), "llvm" (optimised
  /// IR) or "elf". Diagnostics go to standard error.
  mlir::LogicalResult generate(const AttentionVariant &variant, llvm::StringRef stage, std::string &result);

  /// The same for a module that is already in the LLVM and ROCDL dialects; "llvm" or "elf".
  mlir::LogicalResult compileFile(llvm::StringRef path, llvm::StringRef stage, std::string &result);

  /// All rows of the variant table as a kernel pack.
  mlir::LogicalResult generatePack(std::string &result);

private:
  mlir::FailureOr<CodeObject> compile(mlir::ModuleOp module);

  mlir::MLIRContext context;
  PipelineOptions options;
};

} // namespace sluice
