//===- clock_curve.h - the clock of a busy chip ---------------------------------------------------------===//
//
// An MI300X lowers its clock as its matrix cores get busier, to stay within its power limit. Published
// counters give the clock at some utilisations; between those it is interpolated.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>

#include "emulator/timing/timing.h"

namespace sluice::emulator::timing {

struct ClockPoint {
  double mfma_percent; // share of the time that matrix cores are busy
  double clock_mhz;
  std::string_view source;
};
/// By rising utilisation. The first point is an assumption: a chip with idle matrix cores keeps its peak
/// clock.
std::span<const ClockPoint> clock_points();

/// Linear between the points; beyond the last one, its clock.
double published_clock_mhz(double mfma_percent);

/// Times a launch at the clock that matches its matrix core utilisation. HBM and the Infinity Cache do not
/// scale with the clock, so the utilisation in turn depends on it. Each pass takes the clock that the pass
/// before leads to, until they agree within a per cent, in at most `most_clock_passes` passes. Each pass
/// starts from the same memory, which is restored at the end. Without agreement the last pass is returned,
/// with a warning.
TimingResult time_at_published_clock(const Memory &memory,
                                     const std::function<TimingResult(uint32_t clock_mhz)> &time);
inline constexpr uint32_t most_clock_passes = 4;

} // namespace sluice::emulator::timing
