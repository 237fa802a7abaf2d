//===- Disassembly.h - the instructions of a code object, and its loops -----------------------*- C++ -*-===//
#pragma once

#include "target/Chips.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/Error.h"

#include <optional>
#include <string>

namespace sluice {

struct MachineInstruction {
  uint64_t address;
  std::string text; // mnemonic and operands
  std::optional<uint64_t> branchTarget;
};

/// `code` starts at `address`. Fails on bytes that are not an instruction of the chip.
llvm::Expected<llvm::SmallVector<MachineInstruction, 0>> disassemble(llvm::ArrayRef<uint8_t> code,
                                                                     uint64_t address, const Chip &chip);

struct InstructionMix {
  unsigned mfma = 0, valu = 0, salu = 0, lds = 0, vmem = 0, directToLds = 0, scratch = 0;
};

InstructionMix countInstructions(llvm::ArrayRef<MachineInstruction> code);

/// The innermost loops with MFMAs, each from the target of its backward branch to that branch.
llvm::SmallVector<llvm::ArrayRef<MachineInstruction>> findMfmaLoops(llvm::ArrayRef<MachineInstruction> code);

} // namespace sluice
