//===- instruction_text.h - parses LLVM's text ----------------------------------------------------------===//
//
// Parses a line of gfx942 assembly and derives, from the line only, the values of its encoding's fields.
// Shares nothing with the decoder under test except the structure that holds the fields.
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

/// The expected result of split_fields() for the line. `split` is the actual one, used only where encodings
/// differ in bits that the text does not show. Throws std::runtime_error at text it does not understand.
emulator::Fields fields_of_text(const InstructionText &text, const emulator::Fields &split);

} // namespace sluice::test
