//===- static_hazards.h - wait states on every path through a program -----------------------------------===//
//
// The dynamic check sees the path a wave takes. This one follows every path: from each instruction along
// every branch, as far as the instruction can still matter. It stops at jumps through registers.
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

/// Hazards of the `wanted` levels in instructions first .. end - 1, ordered by instruction. Each pair appears
/// once, at its most serious level on any path.
std::vector<StaticHazard> static_hazards(const std::vector<Op> &ops, const OpInfos &infos, uint32_t first,
                                         uint32_t end, std::array<bool, hazard_levels> wanted);

/// The levels of the hazards that a wave may meet after it starts at `entry`: at other levels the dynamic
/// check would find nothing on any path. All levels if the paths are not known, or are too many to follow.
std::array<bool, hazard_levels> hazard_levels_from(const std::vector<Op> &ops, const OpInfos &infos,
                                                   uint32_t end, uint32_t entry);

/// Whether an instruction can be reached from one of `entries`.
std::vector<bool> reachable(const std::vector<Op> &ops, const OpInfos &infos, uint32_t end,
                            std::vector<uint32_t> entries);

/// The wait states that each of `nops` (s_nop instructions in ascending order) must give, at most those it
/// has now, so that no hazard of the `wanted` levels appears. Each is cut down after those before it have
/// been, so that all of them can be cut down together. Hazards that the code already has are ignored.
std::vector<uint8_t> needed_wait_states(const std::vector<Op> &ops, const OpInfos &infos, uint32_t end,
                                        const std::vector<uint32_t> &nops,
                                        std::array<bool, hazard_levels> wanted);

} // namespace sluice::emulator
