//===- row_text.h - rows of the vector unit as assembly -------------------------------------------------===//
//
// Destination from v4, sources from v8, v12 and v16, VCC for masks, so that a test can go through all rows.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <array>
#include <set>
#include <string>
#include <vector>

#include "emulator/exec/valu/table.h"

namespace sluice::test {

constexpr uint32_t row_destination = 4;
constexpr uint32_t row_source(uint32_t k) {
  return 8 + 4 * k;
}

struct RowForm {
  std::string ending;                // "_e64", "_dpp", "_sdwa"
  std::array<std::string, 3> before; // of each source: "-", "|", "-|", "sext("
  std::string modifiers;             // after the operands
};

/// The explicit sources of the instruction.
inline uint32_t written_sources(const emulator::ValuRow &row) {
  return row.form == emulator::ValuForm::accumulate ? row.sources - 1u : row.sources;
}

inline std::string plain_mnemonic(const emulator::ValuRow &row) {
  return std::string(row.mnemonic.substr(0, row.mnemonic.find(' ')));
}

inline std::string registers_text(uint32_t first, uint32_t count) {
  if (count == 1) return "v" + std::to_string(first);
  return "v[" + std::to_string(first) + ":" + std::to_string(first + count - 1) + "]";
}

inline std::string row_text(const emulator::ValuRow &row, const RowForm &form) {
  using emulator::OperandType;
  using emulator::ValuForm;
  std::string text = plain_mnemonic(row) + form.ending + " ";
  text += row.result_type == OperandType::mask ? "vcc"
                                               : registers_text(row_destination, rows_of(row.result_type));
  if (row.mask_out && row.result_type != OperandType::mask) text += ", vcc";
  for (uint32_t k = 0; k < written_sources(row); ++k) {
    const bool constant = (row.form == ValuForm::fused_constant_1 && k == 1) ||
                          (row.form == ValuForm::fused_constant_2 && k == 2);
    const std::string literal = row.source_types[k] == OperandType::f16 ? "0x4201" : "0x40c00001";
    const std::string &before = form.before[k];
    const std::string operand =
        constant ? literal : registers_text(row_source(k), rows_of(row.source_types[k]));
    text += ", " + before + operand + (before.ends_with("|") ? "|" : before.ends_with("(") ? ")" : "");
  }
  if (row.mask_in && row.form != ValuForm::vcc_in) text += ", vcc";
  return text + (row.mnemonic.ends_with(" clamp") ? " clamp" : "") + form.modifiers;
}

/// Rows whose operands are all vector registers or VCC.
inline std::vector<const emulator::ValuRow *> rows_of_lanes() {
  const std::set<std::string_view> others = {
      "v_nop",      "v_readfirstlane_b32", "v_readlane_b32",    "v_writelane_b32",
      "v_swap_b32", "v_accvgpr_read_b32",  "v_accvgpr_mov_b32", "v_accvgpr_write_b32"};
  std::vector<const emulator::ValuRow *> rows;
  for (const std::span<const emulator::ValuRow> part :
       emulator::valu_table(emulator::SimdPath::portable).rows)
    for (const emulator::ValuRow &row : part)
      if (!others.contains(row.mnemonic)) rows.push_back(&row);
  return rows;
}

} // namespace sluice::test
