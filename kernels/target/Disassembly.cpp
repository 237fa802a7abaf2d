//===- Disassembly.cpp - the instructions of a code object, and its loops -------------------------------===//
#include "target/Disassembly.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/MC/MCAsmInfo.h"
#include "llvm/MC/MCContext.h"
#include "llvm/MC/MCDisassembler/MCDisassembler.h"
#include "llvm/MC/MCInst.h"
#include "llvm/MC/MCInstPrinter.h"
#include "llvm/MC/MCInstrAnalysis.h"
#include "llvm/MC/MCInstrInfo.h"
#include "llvm/MC/MCRegisterInfo.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Support/TargetSelect.h"

namespace sluice {

using llvm::ArrayRef;
using llvm::SmallVector;

llvm::Expected<SmallVector<MachineInstruction, 0>> disassemble(ArrayRef<uint8_t> code, uint64_t address,
                                                               const Chip &chip) {
  LLVMInitializeAMDGPUTargetInfo();
  LLVMInitializeAMDGPUTargetMC();
  LLVMInitializeAMDGPUDisassembler();
  std::string error;
  llvm::Triple triple("amdgcn-amd-amdhsa");
  const llvm::Target *target = llvm::TargetRegistry::lookupTarget(triple, error);
  if (!target) return llvm::createStringError(error);
  llvm::MCTargetOptions options;
  std::unique_ptr<llvm::MCRegisterInfo> registers(target->createMCRegInfo(triple));
  std::unique_ptr<llvm::MCAsmInfo> info(target->createMCAsmInfo(*registers, triple, options));
  std::unique_ptr<llvm::MCInstrInfo> instructions(target->createMCInstrInfo());
  std::unique_ptr<llvm::MCSubtargetInfo> subtarget(target->createMCSubtargetInfo(triple, chip.name, ""));
  llvm::MCContext context(triple, info.get(), registers.get(), subtarget.get());
  std::unique_ptr<llvm::MCDisassembler> disassembler(target->createMCDisassembler(*subtarget, context));
  std::unique_ptr<llvm::MCInstrAnalysis> analysis(target->createMCInstrAnalysis(instructions.get()));
  std::unique_ptr<llvm::MCInstPrinter> printer(
      target->createMCInstPrinter(triple, /*SyntaxVariant=*/0, *info, *instructions, *registers));

  SmallVector<MachineInstruction, 0> result;
  for (uint64_t at = 0; at < code.size();) {
    llvm::MCInst instruction;
    uint64_t size = 0;
    if (disassembler->getInstruction(instruction, size, code.drop_front(at), address + at, llvm::nulls()) !=
        llvm::MCDisassembler::Success)
      return llvm::createStringError("no instruction of " + chip.name + " at offset " + llvm::Twine(at));
    MachineInstruction decoded{address + at, {}, {}};
    llvm::raw_string_ostream text(decoded.text);
    printer->printInst(&instruction, address + at, "", *subtarget, text);
    decoded.text = llvm::StringRef(decoded.text).trim().str();
    uint64_t branch;
    if (analysis->isBranch(instruction) && analysis->evaluateBranch(instruction, address + at, size, branch))
      decoded.branchTarget = branch;
    result.push_back(std::move(decoded));
    at += size;
  }
  return result;
}

InstructionMix countInstructions(ArrayRef<MachineInstruction> code) {
  InstructionMix mix;
  for (const MachineInstruction &instruction : code) {
    llvm::StringRef text = instruction.text;
    bool memory = text.starts_with("buffer_") || text.starts_with("global_") || text.starts_with("flat_");
    mix.mfma += text.starts_with("v_mfma_");
    mix.valu += text.starts_with("v_") && !text.starts_with("v_mfma_");
    mix.salu += text.starts_with("s_");
    mix.lds += text.starts_with("ds_");
    mix.vmem += memory;
    mix.directToLds += memory && (text.ends_with(" lds") || text.contains("_lds_"));
    mix.scratch += text.starts_with("scratch_");
  }
  return mix;
}

SmallVector<ArrayRef<MachineInstruction>> findMfmaLoops(ArrayRef<MachineInstruction> code) {
  SmallVector<ArrayRef<MachineInstruction>> loops;
  for (auto [index, instruction] : llvm::enumerate(code)) {
    if (!instruction.branchTarget || *instruction.branchTarget > instruction.address) continue;
    const MachineInstruction *first =
        llvm::find_if(code, [&, target = *instruction.branchTarget](const MachineInstruction &other) {
          return other.address == target;
        });
    ArrayRef<MachineInstruction> loop(first, code.begin() + index + 1);
    if (countInstructions(loop).mfma != 0) loops.push_back(loop);
  }
  // A loop that contains another is not innermost; the last of several branches to one target ends the loop.
  SmallVector<ArrayRef<MachineInstruction>> innermost;
  for (ArrayRef<MachineInstruction> loop : loops) {
    bool holdsOther = llvm::any_of(loops, [&](ArrayRef<MachineInstruction> other) {
      return other.begin() > loop.begin() && other.end() <= loop.end();
    });
    bool isPartOfSame = llvm::any_of(loops, [&](ArrayRef<MachineInstruction> other) {
      return other.begin() == loop.begin() && other.end() > loop.end();
    });
    if (!holdsOther && !isPartOfSame) innermost.push_back(loop);
  }
  return innermost;
}

} // namespace sluice
