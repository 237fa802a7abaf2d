//===- fields_test.cpp - the fields of encodings against LLVM's text ------------------------------------===//
#include <catch2/catch.hpp>

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
  // Without a literal the dword is something else, or does not exist.
  if (llvm.literal != 0) compare("literal", ours.literal, llvm.literal);
  return text;
}

} // namespace

TEST_CASE("the fields of an encoding match LLVM's text", "[isa][corpus]") {
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

} // namespace sluice::test
