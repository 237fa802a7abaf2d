//===- corpus_test.cpp - the corpus is as large as it should be -----------------------------------------===//
#include <catch2/catch.hpp>

#include <map>
#include <set>

#include "isa/corpus.h"
#include "isa/instruction_text.h"

namespace sluice::test {

using emulator::Fields;
using emulator::Format;

TEST_CASE("the corpus holds all that LLVM has for gfx942", "[isa][corpus]") {
  std::map<Format, size_t> by_format;
  std::set<std::string> mnemonics;
  for (const Encoding &encoding : corpus()) {
    ++by_format[emulator::format_of(encoding.dwords[0])];
    mnemonics.insert(parse_instruction(encoding.text).plain_mnemonic());
  }
  CHECK(corpus().size() > 60000);
  CHECK(mnemonics.size() > 1100);
  // xf32 has the bits of VOP3P; the rest of the matrix core counts there as well.
  for (Format format : {Format::sop1, Format::sop2, Format::sopc, Format::sopk, Format::sopp, Format::smem,
                        Format::vop1, Format::vop2, Format::vopc, Format::vop3, Format::vop3p, Format::ds,
                        Format::mubuf, Format::mtbuf, Format::flat}) {
    INFO(emulator::format_name(format));
    CHECK(by_format[format] > 500);
  }
}

TEST_CASE("an opcode of a format has one mnemonic", "[isa][corpus]") {
  std::map<std::tuple<Format, uint32_t, bool, uint32_t>, std::string> mnemonic_of;
  for (const Encoding &encoding : corpus()) {
    const Fields f = emulator::split_fields(encoding.dwords);
    const std::string mnemonic = parse_instruction(encoding.text).plain_mnemonic();
    // SEG of FLAT, and LDS of MUBUF, also select instructions.
    const auto [found, is_new] = mnemonic_of.insert({{f.format, f.op, f.lds, f.segment}, mnemonic});
    CHECK(found->second == mnemonic);
  }
}

} // namespace sluice::test
