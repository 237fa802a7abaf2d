//===- refusals_test.cpp - instructions at which the machine stops --------------------------------------===//
#include <catch2/catch.hpp>

#include <set>

#include "isa/decoded_corpus.h"

namespace sluice::test {

namespace {

struct Refused {
  std::string_view mnemonics; // one, or several: "s_atomic_*"
  std::string_view reason;    // part of the machine's message
};
/// Instructions at which the machine stops: always, or in some forms only.
constexpr Refused refused[] = {
    // The scalar unit
    {"s_rfe_*", "belongs to a trap handler"},
    {"s_endpgm_saved", "belongs to a trap handler"},
    {"s_endpgm_ordered_ps_done", "ends a pixel shader"},
    {"s_sendmsghalt", "for a debugger"},
    {"s_sethalt", "for a debugger"},
    {"s_setvskip", "MODE.VSKIP"},
    {"s_setreg_*", "only the hardware register MODE"},
    {"s_getreg_b32", "does not model this hardware register"},
    // Operands
    {"*", "VCCZ and EXECZ"},
    {"*", "writes the trap registers"},
    {"v_readfirstlane_b32", "the destination is not a scalar register"},
    // The vector unit
    {"v_screen_partition_4se_b32", "not documented"},
    {"v_clrexcp", "for a trap handler"},
    {"v_*", "clamp is not supported"},
    {"v_*", "op_sel selects a half of an operand that has no halves"},
    {"v_pk_fmac_f16", "a meaning in VOP3P only"},
    {"v_pk_mov_b32", "neg, abs, clamp and omod are not supported"},
    {"v_dot2c_f32_f16", "a meaning in VOP3P only"},
    {"v_dot*", "op_sel and neg are not supported"},
    {"v_dot2_f32_f16", "have no meaning for a source that is not packed"},
    // The matrix core
    {"v_mfma_*", "more blocks than can share A"},
    {"v_mfma_*", "not one of the blocks that share A"},
    {"v_mfma_*", "is not defined for this shape"},
    {"v_smfmac_*", "is not defined for SMFMAC"},
    {"v_smfmac_*", "beyond the sets of an index register"},
    // Memory
    {"ds_gws_sema_*", "only the barriers"},
    {"tbuffer_*", "does not have buffer data format"},
    {"tbuffer_*", "does not have buffer number format"},
    {"tbuffer_*", "float is not a number format of buffer data format"},
    {"tbuffer_store_*", "fewer components than the format"},
};

/// A star at the end matches any text.
bool matches(std::string_view pattern, std::string_view mnemonic) {
  if (!pattern.ends_with('*')) return pattern == mnemonic;
  pattern.remove_suffix(1);
  return mnemonic.starts_with(pattern);
}

} // namespace

TEST_CASE("only the known instructions are refused", "[isa][corpus]") {
  std::set<const Refused *> unused;
  for (const Refused &entry : refused)
    unused.insert(&entry);
  for_each_instruction([&](const Decoded &d) -> std::string {
    if (d.op.refusal.empty()) return "";
    for (const Refused &entry : refused) {
      if (!matches(entry.mnemonics, d.instruction.mnemonic)) continue;
      if (d.op.refusal.find(entry.reason) == d.op.refusal.npos) continue;
      unused.erase(&entry);
      return "";
    }
    return "refused: " + d.op.refusal;
  });
  for (const Refused *entry : unused)
    FAIL_CHECK("nothing is refused as " << entry->mnemonics << ", " << entry->reason);
}

TEST_CASE("an accumulation move of a constant, which LLVM decodes, is refused", "[isa][corpus]") {
  emulator::Disassembler disassembler;
  emulator::Decoder decoder(emulator::SimdPath::portable);
  for (uint32_t source : {129u, 242u}) {
    const std::vector<uint32_t> move{0x7e08a400 | source};
    const auto instruction = disassembler.decode(std::as_bytes(std::span(move)), 0);
    REQUIRE(instruction);
    CHECK(instruction->mnemonic == "v_accvgpr_mov_b32");
    CHECK(decoder.decode(*instruction, move, 0).refusal != "");
  }
}

} // namespace sluice::test
