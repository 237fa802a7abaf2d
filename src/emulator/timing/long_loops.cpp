//===- long_loops.cpp - loops larger than an instruction cache ------------------------------------------===//
#include "emulator/timing/long_loops.h"

#include "emulator/timing/control_flow.h"

namespace sluice::emulator::timing {

std::vector<LongLoop> loops_longer_than(const ProgramImpl &program, OpRange kernel,
                                        const TimingResult &result, uint64_t bytes) {
  const ControlFlow flow = control_flow(program, kernel);
  std::vector<LongLoop> found;
  for (const Loop &loop : flow.loops) {
    uint64_t issued = 0;
    for (const uint32_t block : loop.blocks)
      for (uint32_t op = flow.blocks[block].ops.first; op < flow.blocks[block].ops.last; ++op)
        if (result.instructions[op].issued != 0) issued += program.offset_of[op + 1] - program.offset_of[op];
    if (issued > bytes) found.push_back({loop.header, issued});
  }
  return found;
}

} // namespace sluice::emulator::timing
