//===- control_flow.h - paths through a kernel's machine code -------------------------------------------===//
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "emulator/stats/instruction_mix.h"

namespace sluice::emulator {

struct CodeInstruction {
  uint64_t address;
  uint32_t bytes;
  uint32_t word; // the first dword of the encoding
  const InstructionFacts *facts;
  InstructionClass instruction_class;
  std::optional<uint64_t> target; // of a branch
};

/// Bytes that are not an instruction count as `unknown`, 4 at a time.
std::vector<CodeInstruction> decode_code(std::span<const std::byte> code, uint64_t address);

/// The basic blocks of a kernel. Their order in the code means nothing: a backward branch may belong to an
/// out-of-line path that joins the others.
class ControlFlow {
public:
  using Indices = std::vector<size_t>;

  /// `instructions` start at the kernel's entry and must outlive this.
  explicit ControlFlow(std::span<const CodeInstruction> instructions);

  /// The instructions of a loop that a branch back to `target` closes, in order: those from which the branch
  /// is reached without passing its target. If the loop is entered elsewhere, those that are reached from the
  /// target and reach the branch. Empty if the branch is not reached from its target: then it only jumps to
  /// code further up, such as code that the compiler has moved out of the way.
  Indices loop(size_t target, size_t branch) const;

  /// The usual way around the loop with the most MFMAs, from its entry: the path of blocks back to the entry
  /// with the most MFMAs and, among those, with the fewest instructions. It avoids inner loops if possible: a
  /// detour with a loop of its own may have more MFMAs than the path it replaces. None without a loop that
  /// has MFMAs.
  std::optional<Indices> usual_way() const;

private:
  struct Block {
    size_t first = 0, count = 0; // instructions
    uint32_t matrix = 0;         // MFMAs among them
    Indices before, after;       // blocks
  };
  using Edges = Indices Block::*;

  /// The blocks that are reached by one or more edges from `start`, without going on past `end`.
  std::vector<bool> reached(size_t start, Edges edges, size_t end = SIZE_MAX) const;
  std::optional<size_t> main_loop() const;
  std::optional<Indices> way_around(size_t head, const std::vector<bool> &closed) const;

  std::vector<Block> blocks; // by address
  Indices block_of;          // by instruction
};

} // namespace sluice::emulator
