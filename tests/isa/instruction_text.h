//===- instruction_text.h - reading what LLVM prints ----------------------------------------------------===//
//
// Takes a line of gfx942 assembly apart and says, from the line alone, what the fields of its encoding must
// hold. Shares nothing with the decoder that it is there to check but the structure the fields are put into.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "emulator/isa/encoding.h"

namespace sluice::test {

struct InstructionText {
  std::string mnemonic; // as printed
  std::vector<std::string> operands;
  std::map<std::string, std::string> modifiers; // "offset:16" is {offset, 16}, "glc" is {glc, ""}

  /// Without _e32, _e64, _dpp and _sdwa.
  std::string plain_mnemonic() const;
};

InstructionText parse_instruction(std::string_view line);

/// What split_fields() must give for the line. `split` is what it gave: where encodings differ in bits that
/// the text does not show, it tells which was used. Throws std::runtime_error at text it does not understand.
emulator::Fields fields_of_text(const InstructionText &text, const emulator::Fields &split);

} // namespace sluice::test
