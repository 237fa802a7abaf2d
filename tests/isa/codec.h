//===- codec.h - LLVM's gfx942 encoder, decoder, printer and parser, instruction by instruction ---------===//
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace sluice::test {

struct Encoding {
  std::vector<uint32_t> dwords;
  std::string text; // as LLVM prints it

  bool operator==(const Encoding &) const = default;
};

class Codec {
public:
  Codec();
  ~Codec();

  /// The instruction at the start of `dwords`, re-encoded: bits that LLVM's decoder ignores are as LLVM's
  /// encoder writes them. Empty if LLVM does not decode or encode such an instruction.
  std::optional<Encoding> encode_again(std::span<const uint32_t> dwords);

  /// The encoding of each line by LLVM's assembler; empty if it refuses the line.
  static std::vector<std::vector<uint32_t>> assemble_each(std::span<const Encoding> lines);
  /// An ELF file with the instructions one after the other.
  static std::string object_file(std::span<const Encoding> code);

private:
  struct State;
  std::unique_ptr<State> state;
};

} // namespace sluice::test
