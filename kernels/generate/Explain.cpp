//===- Explain.cpp - a readable account of how one kernel is built --------------------------------------===//
#include "generate/Decisions.h"
#include "generate/Generate.h"
#include "package/code_object.h"
#include "target/Disassembly.h"

#include "mlir/IR/Diagnostics.h"
#include "llvm/Support/Format.h"

using namespace mlir;

namespace sluice {

static void printMix(StringRef title, const InstructionMix &mix, llvm::raw_ostream &out) {
  out << "  " << llvm::left_justify(title, 24) << mix.mfma << " MFMA, " << mix.valu << " VALU, " << mix.salu
      << " scalar, " << mix.lds << " LDS, " << mix.vmem << " vector memory (" << mix.directToLds
      << " of them direct-to-LDS), " << mix.scratch << " scratch\n";
}

static LogicalResult printResources(ModuleOp module, const CodeObject &code, const Chip &chip,
                                    llvm::raw_ostream &out) {
  auto bytes = std::as_bytes(std::span(code.elf.data(), code.elf.size()));
  auto object = package::CodeObject::parse(bytes, *package::find_chip(std::string_view(chip.name)));
  for (const package::Kernel &kernel : object.kernels()) {
    out << "\n==== resources on " << chip.name << " ====\n"
        << "  registers: " << kernel.vgpr_count << " VGPR, " << kernel.agpr_count << " AGPR, "
        << kernel.sgpr_count << " SGPR; spills: " << kernel.vgpr_spills << " VGPR, " << kernel.sgpr_spills
        << " SGPR\n"
        << "  scratch " << kernel.private_bytes << " bytes, LDS " << kernel.lds_bytes << " of "
        << chip.ldsBytes << " bytes, code " << kernel.code_bytes << " bytes\n";
    for (const package::Segment &segment : object.segments()) {
      uint64_t offset = kernel.entry_address - segment.address;
      if (kernel.entry_address < segment.address || offset + kernel.code_bytes > segment.file.size())
        continue;
      const auto *start = reinterpret_cast<const uint8_t *>(segment.file.data() + offset);
      auto instructions = disassemble(ArrayRef(start, kernel.code_bytes), kernel.entry_address, chip);
      if (!instructions) return module.emitError() << llvm::toString(instructions.takeError());
      printMix("whole kernel:", countInstructions(*instructions), out);
      for (ArrayRef<MachineInstruction> loop : findMfmaLoops(*instructions)) {
        std::string title;
        llvm::raw_string_ostream(title) << "loop " << llvm::format_hex_no_prefix(loop.front().address, 4)
                                        << "-" << llvm::format_hex_no_prefix(loop.back().address, 4) << ":";
        printMix(title, countInstructions(loop), out);
      }
    }
  }
  return success();
}

LogicalResult Generator::explain(const Variant &variant, const Chip &chip, llvm::raw_ostream &out) {
  std::string remarks;
  OwningOpRef<ModuleOp> module;
  {
    ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
      if (diagnostic.getSeverity() != DiagnosticSeverity::Remark) return failure();
      llvm::raw_string_ostream(remarks) << "  remark: " << diagnostic << "\n";
      return success();
    });
    module = lower(variant, chip, &out);
  }
  if (!module) return failure();
  FailureOr<CodeObject> code = compile(*module, chip);
  if (failed(code)) return failure();
  printDecisions(*module->getOps<gpu::GPUModuleOp>().begin(), out);
  if (!remarks.empty()) out << "\n==== remarks ====\n" << remarks;
  return printResources(*module, *code, chip, out);
}

} // namespace sluice
