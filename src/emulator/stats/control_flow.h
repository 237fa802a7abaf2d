//===- control_flow.h - the ways through a kernel's machine code ----------------------------------------===//
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
  uint32_t word; // the first of the encoding
  std::string mnemonic;
  InstructionClass instruction_class;
};

/// What bytes are no instruction count as `unknown`, 4 at a time.
std::vector<CodeInstruction> decode_code(std::span<const std::byte> code, uint64_t address);

uint64_t branch_target(const CodeInstruction &branch);

/// The basic blocks of a kernel. Where the compiler puts them says nothing: a branch backwards may be a way
/// out of line that joins the others.
class ControlFlow {
public:
  using Indices = std::vector<size_t>;

  /// `instructions` from the kernel's entry on, which outlive this.
  explicit ControlFlow(std::span<const CodeInstruction> instructions);

  /// The instructions of a loop that a branch back to `target` closes, in order: those from which the branch
  /// is reached without passing its target. Where the loop is entered elsewhere, those that are reached from
  /// the target and reach the branch. None if the branch is not reached from its target: then it only jumps
  /// to code that stands further up, as code that the compiler has moved out of the way does.
  Indices loop(size_t target, size_t branch) const;

  /// The usual way around the loop with the most MFMAs, from where it is entered: over the blocks that lead
  /// back there, with the most MFMAs, and of as many with the fewest instructions. Beside loops inside of it
  /// if that is possible: a detour with a loop of its own may have more MFMAs than what it stands in for.
  /// None without a loop that has MFMAs.
  std::optional<Indices> usual_way() const;

private:
  struct Block {
    size_t first = 0, count = 0; // instructions
    uint32_t matrix = 0;         // MFMAs among them
    Indices before, behind;      // blocks
  };
  using Edges = Indices Block::*;

  /// The blocks that are reached by one or more edges from `start`, without going on behind `end`.
  std::vector<bool> reached(size_t start, Edges edges, size_t end = SIZE_MAX) const;
  std::optional<size_t> main_loop() const;
  std::optional<Indices> way_around(size_t head, const std::vector<bool> &closed) const;

  std::vector<Block> blocks; // by address
  Indices block_of;          // of each instruction
};

} // namespace sluice::emulator
