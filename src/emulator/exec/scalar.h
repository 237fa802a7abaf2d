//===- scalar.h - the scalar instructions ---------------------------------------------------------------===//
//
// There is one row per instruction of SOP1, SOP2, SOPC, SOPK and SOPP: its mnemonic, the routine that runs it
// and the types of its sources, which say how constants are widened.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <span>
#include <string_view>

#include "emulator/isa/encoding.h"
#include "emulator/isa/op.h"

namespace sluice::emulator {

struct ScalarRow {
  std::string_view mnemonic;
  Format format;
  Handler run;
  OperandType source_types[2] = {OperandType::none, OperandType::none};
  Definedness definedness = Definedness::all;
};

/// Null if the instruction does not exist.
const ScalarRow *scalar_row(std::string_view mnemonic);
std::span<const ScalarRow> scalar_rows();

} // namespace sluice::emulator
