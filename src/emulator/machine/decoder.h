//===- decoder.h - from encodings to operations ---------------------------------------------------------===//
#pragma once

#include <string>

#include "emulator/exec/memory/memory_routines.h"
#include "emulator/exec/scalar.h"
#include "emulator/exec/valu/table.h"
#include "emulator/isa/disassembler.h"
#include "emulator/isa/encoding.h"
#include "emulator/isa/op.h"
#include "emulator/isa/op_info.h"
#include "emulator/machine/operands.h"

namespace sluice::emulator {

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
  /// False if the machine leaves the instruction out.
  bool decode_by_format(const Instruction &instruction, const Fields &f, uint32_t position,
                        DecodedOp &result);
  void decode_scalar(const ScalarRow &row, const Fields &f, uint32_t position, DecodedOp &result);
  void decode_mfma(const Fields &f, DecodedOp &result);

  // decode_valu.cpp
  bool decode_valu(const Instruction &instruction, const Fields &f, DecodedOp &result);
  void place_valu_sources(const ValuRow &row, const InstructionFacts &facts, const Fields &f, Op &op);
  Handler valu_routine(const ValuRow &row, Role role, const ValuControl &control) const;

  // decode_memory.cpp
  bool decode_memory(const Fields &f, DecodedOp &result);

  const ValuTable &valu;
  ConstantPool pool;
};

} // namespace sluice::emulator
