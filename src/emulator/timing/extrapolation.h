//===- extrapolation.h - from simulated workgroups to the device ----------------------------------------===//
//
// How long the others take, and when the last of all ends. Durations follow the work of workgroups, and that
// follows a coordinate of the grid, where it differs at all: with a causal mask the tile of queries. Which
// one is found from the executed instructions, which hold no noise of caches; along it durations are
// interpolated. The parts of the sample say how far off that may be: each is left out once.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "emulator/timing/workgroup_source.h"

namespace sluice::emulator::timing {

/// Deals all workgroups of a grid to the places of the device and fills in what the result says of it. Where
/// all of an XCD's were simulated, the launch ends no earlier than these; where all of the device's were,
/// with them.
void extrapolate(std::array<uint32_t, 3> grid, const Selection &selection, TimingResult &result);

/// By how much the instructions of workgroups differ from what others say they should be, in per cent: a
/// check of workgroups that were not simulated against those that were.
double difference_percent(std::array<uint32_t, 3> grid, const TimingResult &result,
                          std::span<const WorkgroupTime> others);

} // namespace sluice::emulator::timing
