//===- operands.h - the operands of operations ----------------------------------------------------------===//
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "emulator/isa/encoding.h"
#include "emulator/isa/op.h"

namespace sluice::emulator {

/// Why the machine cannot run an instruction.
struct Refusal {
  std::string reason;
};

/// Constants as rows of 64 equal dwords, so that instructions read them like registers.
class ConstantPool {
public:
  uint16_t operand(uint32_t low, uint32_t high);
  /// The operand that a code of the manual names: a register or a constant.
  uint16_t source(uint16_t code, OperandType type, const Fields &fields);
  const std::vector<uint32_t> &rows() const { return all; }

private:
  std::map<std::pair<uint32_t, uint32_t>, uint16_t> known;
  std::vector<uint32_t> all;
};

uint16_t vector_register(uint32_t number, bool accumulation);
uint16_t scalar_register(uint32_t number);
/// The first register of a matrix operand.
uint16_t matrix_register(uint32_t number, uint32_t rows, bool accumulation);

} // namespace sluice::emulator
