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

  /// The instruction at the start of `dwords`, encoded anew: what LLVM's decoder does not look at is as
  /// LLVM's encoder writes it. Nothing when LLVM decodes or encodes no such instruction.
  std::optional<Encoding> encode_again(std::span<const uint32_t> dwords);

  /// What LLVM's assembler makes of each line; empty where it refuses the line.
  static std::vector<std::vector<uint32_t>> assemble_each(std::span<const Encoding> lines);
  /// An ELF file with the instructions one after the other.
  static std::string object_file(std::span<const Encoding> code);

private:
  struct State;
  std::unique_ptr<State> state;
};

} // namespace sluice::test
