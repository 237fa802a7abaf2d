//===- table.h - the vector ALU instructions ------------------------------------------------------------===//
//
// The bodies exist once in source (the .inc files of this folder) and three times in the library: for plain
// x86-64 or any other host, for AVX2 and for AVX-512. All three produce the same bits.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <span>
#include <string_view>

#include "emulator/isa/op.h"

namespace sluice::emulator {

/// How an instruction's operands differ from the usual form.
enum class ValuForm : uint8_t {
  plain,
  accumulate,       // the destination is the last source as well
  fused_constant_1, // v_fmamk: the literal is the middle source
  fused_constant_2, // v_fmaak: the literal is the last source
  vcc_in,           // the mask source is VCC even in VOP3
  keeps_half,       // writes half a register and keeps the other
  keeps_part,       // writes the part of a register that op_sel names, and keeps the rest
};

struct ValuRow {
  std::string_view mnemonic; // " clamp" at the end: the form with CLAMP of an integer instruction
  LaneBody body = nullptr;
  Handler run = nullptr; // an instruction that works on the wave, instead of a body
  uint8_t sources = 0;
  OperandType source_types[3] = {OperandType::none, OperandType::none, OperandType::none};
  OperandType result_type = OperandType::none;
  bool mask_in = false;  // reads a bit per lane: a carry, a selection
  bool mask_out = false; // writes a bit per lane: a carry, a comparison
  ValuForm form = ValuForm::plain;
  Definedness definedness = Definedness::all;
};

struct ValuTable {
  const ValuRow *(*find)(std::string_view mnemonic);
  std::span<const std::span<const ValuRow>> rows;
  /// Runs a body: sources, modifiers, EXEC, result. `simple`: 32-bit operands without modifiers or masks.
  Handler run_simple[4]; // by number of sources
  Handler run_general;
  Handler run_compare;      // the result is only a mask
  Handler run_compare_exec; // which also goes to EXEC
};

enum class SimdPath : uint8_t { portable, avx2, avx512 };
bool simd_path_available(SimdPath path);
SimdPath best_simd_path();
const ValuTable &valu_table(SimdPath path);

} // namespace sluice::emulator
