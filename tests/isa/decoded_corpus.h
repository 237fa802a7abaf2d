//===- decoded_corpus.h - the corpus through the machine's decoder --------------------------------------===//
#pragma once

#include <string>

#include <catch2/catch.hpp>

#include "emulator/machine/decoder.h"
#include "isa/corpus.h"

namespace sluice::test {

struct Decoded {
  emulator::Instruction instruction;
  emulator::DecodedOp op;
  emulator::Format format;
};

/// Calls `check` with each instruction of the corpus; text from it is a mistake. Gives up after a few.
template <class Check> void for_each_instruction(const Check &check) {
  emulator::Disassembler disassembler;
  emulator::Decoder decoder(emulator::SimdPath::portable);
  size_t wrong = 0;
  for (const Encoding &encoding : corpus()) {
    const auto instruction = disassembler.decode(std::as_bytes(std::span(encoding.dwords)), 0);
    REQUIRE(instruction);
    const Decoded decoded{*instruction, decoder.decode(*instruction, encoding.dwords, 0),
                          emulator::split_fields(encoding.dwords).format};
    const std::string mistake = check(decoded);
    if (mistake.empty()) continue;
    UNSCOPED_INFO(instruction->text);
    FAIL_CHECK(mistake);
    if (++wrong == 20) return;
  }
}

} // namespace sluice::test
