//===- Generate.h - variants to machine code and packs ----------------------------------------*- C++ -*-===//
#pragma once

#include "generate/Pipeline.h"
#include "generate/ScheduleTable.h"
#include "generate/VariantTable.h"
#include "target/Codegen.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"

#include <string>
#include <vector>

namespace sluice {

/// The variant's name by the grammar of package/kernel_name.h; also the kernel's symbol.
std::string kernelName(const Variant &variant);

class Generator {
public:
  explicit Generator(unsigned stages);

  /// For tests of what a pass contributes: lower() leaves out the pass of that name. A pass that runs several
  /// times has a name for each run: "canonicalize", "canonicalize:2" ... A name without a run is an error.
  void disablePass(llvm::StringRef name) { disabledPass = name.str(); }
  /// The names, in order, of the passes that run on a variant.
  mlir::FailureOr<std::vector<std::string>> passNames(const Variant &variant, const Chip &chip);

  /// Kernels with their own choices for the final order of their instructions.
  void setSchedules(ScheduleTable table) { schedules = std::move(table); }

  /// One kernel for one chip at a stage: "input" (sluice.attention, or the body of a cache operation), "mlir"
  /// (LLVM and ROCDL dialects), "llvm" (optimised IR), "asm" or "elf". Diagnostics go to standard error.
  mlir::LogicalResult generate(const Variant &variant, const Chip &chip, llvm::StringRef stage,
                               std::string &result);

  /// The same for a module that is already in the LLVM and ROCDL dialects; "llvm", "asm" or "elf".
  mlir::LogicalResult compileFile(llvm::StringRef path, const Chip &chip, llvm::StringRef stage,
                                  std::string &result);

  /// The variants, each for all the chips that support it, as a kernel pack. Throws support::Failure for
  /// names that the pack's grammar does not have.
  mlir::LogicalResult generatePack(llvm::ArrayRef<Variant> variants, llvm::ArrayRef<const Chip *> chips,
                                   std::string &result);

  /// A readable account of how one kernel for one chip is built: the IR after each pass that changes it, the
  /// passes' decisions, the LDS map, and the resources of the machine code.
  mlir::LogicalResult explain(const Variant &variant, const Chip &chip, llvm::raw_ostream &out);

private:
  /// Runs the pipeline; the IR after each pass that changes it goes to `stagesOut`, if there is one.
  mlir::OwningOpRef<mlir::ModuleOp> lower(const Variant &variant, const Chip &chip,
                                          llvm::raw_ostream *stagesOut = nullptr);
  mlir::FailureOr<CodeObject> compile(mlir::ModuleOp module, const Chip &chip);

  // A build generates a kernel on each core: threads within one would only wait.
  mlir::MLIRContext context{mlir::MLIRContext::Threading::DISABLED};
  unsigned stages;
  ScheduleTable schedules;
  std::string disabledPass;
  std::vector<std::string> passRuns; // of the module last lowered
};

} // namespace sluice
