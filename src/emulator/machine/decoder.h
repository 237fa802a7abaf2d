//===- decoder.h - from encodings to operations ---------------------------------------------------------===//
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "emulator/exec/memory/memory_routines.h"
#include "emulator/exec/scalar.h"
#include "emulator/exec/valu/table.h"
#include "emulator/isa/disassembler.h"
#include "emulator/isa/encoding.h"
#include "emulator/isa/op.h"
#include "emulator/isa/op_info.h"

namespace sluice::emulator {

/// Constants as rows of 64 equal dwords, so that instructions read them like registers.
class ConstantPool {
public:
  uint16_t operand(uint32_t low, uint32_t high);
  const std::vector<uint32_t> &rows() const { return all; }

private:
  std::map<std::pair<uint32_t, uint32_t>, uint16_t> known;
  std::vector<uint32_t> all;
};

struct DecodedOp {
  Op fast;
  Op strict;
  OpInfo info;         // without the register ranges
  std::string refusal; // not empty: why the machine cannot run it
};

class Decoder {
public:
  explicit Decoder(SimdPath path) : valu(valu_table(path)) {}

  /// `dwords` are the instruction's; `position` is where it starts in the code, in dwords.
  DecodedOp decode(const Instruction &instruction, std::span<const uint32_t> dwords, uint32_t position);
  /// A stop for bytes that are not an instruction.
  static DecodedOp refuse(std::string reason);

  const ConstantPool &constants() const { return pool; }

private:
  uint16_t operand(uint16_t code, OperandType type, const Fields &fields);
  void decode_scalar(const ScalarRow &row, const Fields &f, uint32_t position, DecodedOp &result);
  /// `has_clamp_form`: the row is that of the instruction with CLAMP.
  void decode_valu(const ValuRow &row, bool has_clamp_form, const Fields &f, DecodedOp &result);
  void decode_mfma(const Fields &f, DecodedOp &result);
  void decode_memory(const MemoryRoutines &routines, const Fields &f, DecodedOp &result);

  const ValuTable &valu;
  ConstantPool pool;
};

} // namespace sluice::emulator
