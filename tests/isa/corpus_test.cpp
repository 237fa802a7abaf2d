//===- corpus_test.cpp - the corpus, and its fields against LLVM's text
//----------------------------------===//
#include <catch2/catch.hpp>

#include <map>
#include <set>

#include "emulator/isa/disassembler.h"
#include "isa/corpus.h"
#include "isa/instruction_text.h"

namespace sluice::test {

namespace {

using emulator::Fields;
using emulator::Format;

struct Member {
  const char *name;
  uint32_t (*value)(const Fields &);
};
#define SLUICE_MEMBER(member) {#member, [](const Fields &f) { return uint32_t(f.member); }}
constexpr Member members[] = {
    SLUICE_MEMBER(dst),
    SLUICE_MEMBER(sdst),
    SLUICE_MEMBER(src[0]),
    SLUICE_MEMBER(src[1]),
    SLUICE_MEMBER(src[2]),
    SLUICE_MEMBER(imm),
    SLUICE_MEMBER(has_literal),
    SLUICE_MEMBER(negate),
    SLUICE_MEMBER(absolute),
    SLUICE_MEMBER(output_scale),
    SLUICE_MEMBER(op_sel),
    SLUICE_MEMBER(op_sel_hi),
    SLUICE_MEMBER(negate_high),
    SLUICE_MEMBER(clamp),
    SLUICE_MEMBER(is_sdwa),
    SLUICE_MEMBER(is_dpp),
    SLUICE_MEMBER(sdwa_has_sdst),
    SLUICE_MEMBER(sdwa_dst),
    SLUICE_MEMBER(sdwa_unused),
    SLUICE_MEMBER(sdwa_src0),
    SLUICE_MEMBER(sdwa_src1),
    SLUICE_MEMBER(sdwa_sext0),
    SLUICE_MEMBER(sdwa_sext1),
    SLUICE_MEMBER(dpp_control),
    SLUICE_MEMBER(dpp_bound_zero),
    SLUICE_MEMBER(dpp_bank_mask),
    SLUICE_MEMBER(dpp_row_mask),
    SLUICE_MEMBER(acc),
    SLUICE_MEMBER(acc_cd),
    SLUICE_MEMBER(cbsz),
    SLUICE_MEMBER(abid),
    SLUICE_MEMBER(blgp),
    SLUICE_MEMBER(offset0),
    SLUICE_MEMBER(offset1),
    SLUICE_MEMBER(srsrc),
    SLUICE_MEMBER(soffset),
    SLUICE_MEMBER(soffset_enable),
    SLUICE_MEMBER(imm_enable),
    SLUICE_MEMBER(offen),
    SLUICE_MEMBER(idxen),
    SLUICE_MEMBER(lds),
    SLUICE_MEMBER(sc0),
    SLUICE_MEMBER(sc1),
    SLUICE_MEMBER(nt),
    SLUICE_MEMBER(data_format),
    SLUICE_MEMBER(number_format),
    SLUICE_MEMBER(segment),
    SLUICE_MEMBER(scratch_vaddr),
};
#undef SLUICE_MEMBER

/// "dst 4, LLVM 5; ..."
std::string differences(const Fields &ours, const Fields &llvm) {
  std::string text;
  auto compare = [&](const char *name, uint32_t our_value, uint32_t llvm_value) {
    if (our_value != llvm_value)
      text +=
          std::string(name) + " " + std::to_string(our_value) + ", LLVM " + std::to_string(llvm_value) + "; ";
  };
  for (const Member &member : members)
    compare(member.name, member.value(ours), member.value(llvm));
  // Without a literal the dword is something else, or is not there.
  if (llvm.literal != 0) compare("literal", ours.literal, llvm.literal);
  return text;
}

} // namespace

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

TEST_CASE("the fields of an encoding are what LLVM's text says", "[isa][corpus]") {
  size_t wrong = 0;
  for (const Encoding &encoding : corpus()) {
    const Fields ours = emulator::split_fields(encoding.dwords);
    std::string problem;
    try {
      problem = differences(ours, fields_of_text(parse_instruction(encoding.text), ours));
    } catch (const std::exception &error) {
      problem = error.what();
    }
    if (problem.empty()) continue;
    if (++wrong > 20) break;
    UNSCOPED_INFO(encoding.text);
    FAIL_CHECK(problem);
  }
  CHECK(wrong == 0);
}

TEST_CASE("an opcode of a format has one mnemonic", "[isa][corpus]") {
  std::map<std::tuple<Format, uint32_t, bool, uint32_t>, std::string> mnemonic_of;
  for (const Encoding &encoding : corpus()) {
    const Fields f = emulator::split_fields(encoding.dwords);
    const std::string mnemonic = parse_instruction(encoding.text).plain_mnemonic();
    // SEG of FLAT, and LDS of MUBUF, choose among instructions too.
    const auto [found, is_new] = mnemonic_of.insert({{f.format, f.op, f.lds, f.segment}, mnemonic});
    CHECK(found->second == mnemonic);
  }
}

} // namespace sluice::test
