//===- control_flow.h - blocks and loops of a kernel ----------------------------------------------------===//
#pragma once

#include <cstdint>
#include <vector>

#include "emulator/machine/program.h"

namespace sluice::emulator::timing {

/// Instructions that run one after another.
struct Block {
  OpRange ops;
  std::vector<uint32_t> loops; // the loops that contain it, by index, outermost first
};

/// A branch back to a block that all paths to the branch pass, and everything on paths between the two.
struct Loop {
  uint32_t header;              // first instruction
  std::vector<uint32_t> blocks; // by index, ascending
};

struct ControlFlow {
  std::vector<Block> blocks; // by address
  std::vector<Loop> loops;   // by header

  /// Null if no block has it.
  const Block *block_of(uint32_t op) const;
};

/// LLVM's long branches are followed. Other indirect jumps and calls are not, and code that only they reach
/// is in no loop. A call is assumed to return.
ControlFlow control_flow(const ProgramImpl &program, OpRange ops);

} // namespace sluice::emulator::timing
