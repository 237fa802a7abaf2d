//===- extrapolation.h - from simulated workgroups to the device ----------------------------------------===//
//
// How long the others take, and when the last of all ends. Durations follow the work of workgroups, and that
// follows a coordinate of the grid, where it differs at all: with a causal mask the tile of queries. Which
// one is found from the executed instructions, which hold no noise of caches; along it durations are
// interpolated.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <array>
#include <cstdint>

#include "emulator/timing/timing.h"

namespace sluice::emulator::timing {

/// Deals all workgroups of a grid to the places of the device and fills in what the result says of it. Where
/// all of an XCD's were simulated, the launch ends no earlier than these.
void extrapolate(std::array<uint32_t, 3> grid, bool whole_xcd, TimingResult &result);

} // namespace sluice::emulator::timing
