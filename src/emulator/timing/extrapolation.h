//===- extrapolation.h - from simulated workgroups to the device ----------------------------------------===//
//
// Estimates how long the other workgroups take, and when the last one ends. Durations follow the work of
// workgroups. Work follows a coordinate of the grid, if it differs at all: with a causal mask, the tile of
// queries. The coordinate is found from the executed instructions, which contain no cache noise, and
// durations are interpolated along it. The parts of the sample give the error: each is left out once.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "emulator/timing/workgroup_source.h"

namespace sluice::emulator::timing {

/// Assigns all workgroups of a grid to the places of the device and fills in the result. If all workgroups of
/// an XCD were simulated, the launch ends no earlier than they did; if all of the device's were, it ends with
/// them.
void extrapolate(std::array<uint32_t, 3> grid, const Selection &selection, TimingResult &result);

/// The amount by which the instruction counts of `others` differ from the counts interpolated from the
/// result, in per cent: checks workgroups that were not simulated against those that were.
double difference_percent(std::array<uint32_t, 3> grid, const TimingResult &result,
                          std::span<const WorkgroupTime> others);

} // namespace sluice::emulator::timing
