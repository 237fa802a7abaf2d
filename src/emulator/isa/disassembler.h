//===- disassembler.h - disassembles gfx942 with LLVM's machine-code layer ------------------------------===//
//
// Gives the length of an instruction, its name and the registers it reads and writes. This header exposes no
// LLVM types; source_lines.cpp is the only other file of the machine that uses LLVM.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "emulator/isa/instructions.h"

namespace sluice::emulator {

/// Consecutive registers of one file, by operand number (exec/op.h).
struct RegisterRange {
  uint16_t first;
  uint16_t count;

  bool operator==(const RegisterRange &) const = default;
};

struct Instruction {
  uint32_t bytes = 0;
  std::string name;     // LLVM's name of the opcode
  std::string mnemonic; // as printed, without _e32, _e64, _dpp and _sdwa
  std::string text;     // the whole line
  const InstructionFacts *facts = &no_instruction;
  std::vector<RegisterRange> reads; // as LLVM says
  std::vector<RegisterRange> writes;
};

/// Of a pair of dwords, LLVM says that both are read; op_sel and op_sel_hi may choose only one. `dwords` are
/// the instruction's.
std::vector<RegisterRange> registers_read(const Instruction &instruction, std::span<const uint32_t> dwords);

/// Not thread-safe.
class Disassembler {
public:
  /// Throws std::runtime_error if LLVM has no AMDGPU target or is not the version this was written for.
  Disassembler();
  ~Disassembler();

  /// The instruction at the start of `code`; branch targets are printed relative to `address`. Returns
  /// nothing if the bytes are not a gfx942 instruction.
  std::optional<Instruction> decode(std::span<const std::byte> code, uint64_t address);

private:
  struct State;
  std::unique_ptr<State> state;
};

} // namespace sluice::emulator
