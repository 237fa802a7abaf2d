//===- static_hazards.h - wait states on every path through a program -----------------------------------===//
//
// The dynamic check sees the path a wave takes. This one follows all of them: from each instruction along
// every branch, as far as any instruction can matter. It stops at jumps through registers.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <vector>

#include "emulator/check/hazards.h"

namespace sluice::emulator {

struct StaticHazard {
  uint32_t op;
  HazardFound found;
};

/// In instructions first .. end - 1; each pair of instructions once, at the most serious level that a path
/// has it at, ordered by instruction.
std::vector<StaticHazard> static_hazards(const std::vector<Op> &ops, const OpInfos &infos, uint32_t first,
                                         uint32_t end);

} // namespace sluice::emulator
