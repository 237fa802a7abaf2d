//===- disassembler_test.cpp - the machine's disassembler against llvm-objdump --------------------------===//
#include <catch2/catch.hpp>

#include <cstdlib>

#include "emulator/isa/disassembler.h"
#include "isa/corpus.h"
#include "support/temporary_folder.h"

namespace sluice::test {

namespace {

/// Words separated by one space, up to the comment that objdump appends to a line.
std::string words_of(std::string_view line) {
  std::string words;
  for (char c : line.substr(0, line.find("//")))
    if (c != ' ' && c != '\t')
      words += c;
    else if (!words.empty() && words.back() != ' ')
      words += ' ';
  while (words.ends_with(' '))
    words.pop_back();
  return words;
}

std::vector<std::string> objdump(const std::string &file) {
  const TemporaryFolder folder;
  const std::string out = folder.path("text");
  const std::string command =
      SLUICE_OBJDUMP " -d --mcpu=gfx942 --no-show-raw-insn '" + file + "' > '" + out + "'";
  REQUIRE(std::system(command.c_str()) == 0);
  std::vector<std::string> lines;
  std::ifstream text(out);
  // Instruction lines begin with a tab, headings and labels do not.
  for (std::string line; std::getline(text, line);)
    if (line.starts_with('\t')) lines.push_back(words_of(line));
  return lines;
}

} // namespace

TEST_CASE("the machine prints instructions as llvm-objdump does", "[isa][corpus]") {
  const TemporaryFolder folder;
  const std::vector<std::string> expected = objdump(folder.write("corpus.o", Codec::object_file(corpus())));
  REQUIRE(expected.size() == corpus().size());

  emulator::Disassembler disassembler;
  size_t wrong = 0;
  for (size_t i = 0; i < expected.size() && wrong < 20; ++i) {
    const std::vector<uint32_t> &dwords = corpus()[i].dwords;
    const auto instruction = disassembler.decode(std::as_bytes(std::span(dwords)), 0);
    if (instruction && instruction->bytes == dwords.size() * 4 && instruction->text == expected[i]) continue;
    ++wrong;
    UNSCOPED_INFO("llvm-objdump: " << expected[i]);
    FAIL_CHECK((instruction ? instruction->text : "no instruction"));
  }
}

} // namespace sluice::test
