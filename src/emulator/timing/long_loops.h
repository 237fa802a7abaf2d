//===- long_loops.h - loops larger than an instruction cache --------------------------------------------===//
#pragma once

#include <cstdint>
#include <vector>

#include "emulator/machine/program.h"
#include "emulator/timing/timing.h"

namespace sluice::emulator::timing {

struct LongLoop {
  uint32_t header; // first instruction, by index
  uint64_t bytes;  // of its issued instructions
};

/// Loops with more than `bytes` issued bytes.
std::vector<LongLoop> loops_longer_than(const ProgramImpl &program, OpRange kernel,
                                        const TimingResult &result, uint64_t bytes);

} // namespace sluice::emulator::timing
