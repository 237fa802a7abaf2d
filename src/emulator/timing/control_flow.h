//===- control_flow.h - blocks and loops of a kernel ----------------------------------------------------===//
#pragma once

#include <cstdint>
#include <vector>

#include "emulator/machine/program.h"

namespace sluice::emulator::timing {

/// Instructions that run one after another.
struct Block {
  OpRange ops;
  std::vector<uint32_t> loops; // that it lies in, by index, outermost first
};

/// A branch back to a block that every way to the branch passes, and all that lies on ways between the two.
struct Loop {
  uint32_t header;              // first instruction
  std::vector<uint32_t> blocks; // by index, ascending
};

struct ControlFlow {
  std::vector<Block> blocks; // by address
  std::vector<Loop> loops;   // by header

  /// Null: none.
  const Block *block_of(uint32_t op) const;
};

/// Where indirect jumps and calls lead is not followed, and what nothing else leads to lies in no loop. A
/// call is taken to return.
ControlFlow control_flow(const ProgramImpl &program, OpRange ops);

} // namespace sluice::emulator::timing
