//===- instructions.cpp - finds the facts about an instruction ------------------------------------------===//
#include "emulator/isa/instructions.h"

#include <array>
#include <unordered_map>

#include "emulator/isa/mfma_shapes.h"

namespace sluice::emulator {

namespace {

/// MFMA and SMFMAC differ from each other only in their shapes.
std::span<const InstructionFacts> matrix_instructions() {
  static const auto rows = [] {
    std::array<InstructionFacts, mfma_instruction_count> result;
    for (size_t i = 0; i < result.size(); ++i)
      result[i] = {.mnemonic = mfma_instructions()[i].mnemonic, .pipe = Pipe::matrix, .matrix = uint8_t(i)};
    return result;
  }();
  return rows;
}

} // namespace

std::span<const std::span<const InstructionFacts>> all_instruction_facts() {
  static const std::array parts = {detail::scalar_instructions(), detail::vector_instructions(),
                                   detail::comparison_instructions(), detail::memory_instructions(),
                                   matrix_instructions()};
  return parts;
}

const InstructionFacts *instruction_facts(std::string_view mnemonic) {
  static const std::unordered_map<std::string_view, const InstructionFacts *> rows = [] {
    std::unordered_map<std::string_view, const InstructionFacts *> map;
    for (std::span<const InstructionFacts> part : all_instruction_facts())
      for (const InstructionFacts &row : part)
        map.emplace(row.mnemonic, &row);
    return map;
  }();
  const auto found = rows.find(mnemonic);
  return found == rows.end() ? nullptr : found->second;
}

} // namespace sluice::emulator
