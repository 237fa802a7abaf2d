//===- static_hazards.h - wait states on every path through a program -----------------------------------===//
//
// The dynamic check sees the path a wave takes. This one follows all of them: from each instruction along
// every branch, as far as any instruction can matter. It stops at jumps through registers.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <array>
#include <vector>

#include "emulator/check/hazards.h"

namespace sluice::emulator {

struct StaticHazard {
  uint32_t op;
  HazardFound found;
};

/// Of the `wanted` levels, in instructions first .. end - 1; each pair of instructions once, at the most
/// serious level that a path has it at, ordered by instruction.
std::vector<StaticHazard> static_hazards(const std::vector<Op> &ops, const OpInfos &infos, uint32_t first,
                                         uint32_t end, std::array<bool, hazard_levels> wanted);

/// Whether an instruction can be reached from one of `entries`.
std::vector<bool> reachable(const std::vector<Op> &ops, const OpInfos &infos, uint32_t end,
                            std::vector<uint32_t> entries);

/// The wait states that each of `nops`, s_nop instructions in ascending order, has to give, at most those it
/// has, so that no hazard of the `wanted` levels comes about. Each is cut down with those before it cut down
/// already, so that all of them can be. Hazards that the code has already are ignored.
std::vector<uint8_t> needed_wait_states(const std::vector<Op> &ops, const OpInfos &infos, uint32_t end,
                                        const std::vector<uint32_t> &nops,
                                        std::array<bool, hazard_levels> wanted);

} // namespace sluice::emulator
