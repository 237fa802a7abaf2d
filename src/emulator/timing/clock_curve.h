//===- clock_curve.h - which clock a busy chip keeps ----------------------------------------------------===//
//
// An MI300X slows down as its matrix cores get busier, to keep within its power. Published counters give the
// clock at some utilisations; between them it is interpolated.
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
  double mfma_percent; // of the time that matrix cores are busy
  double clock_mhz;
  std::string_view source;
};
/// By rising utilisation. The first is assumed: a chip whose matrix cores are idle keeps its peak clock.
std::span<const ClockPoint> clock_points();

/// Straight lines between the points; beyond the last, its clock.
double published_clock_mhz(double mfma_percent);

/// Times a launch at the clock that belongs to how busy it keeps the matrix cores: HBM and the Infinity Cache
/// do not follow the clock, so that how busy they are follows from it. Each pass takes the clock of the one
/// before, until they agree within a per cent, in at most `most_clock_passes` passes. Each pass starts from
/// the same memory, which is restored at the end. Without agreement the last pass is returned, with a
/// warning.
TimingResult time_at_published_clock(const Memory &memory,
                                     const std::function<TimingResult(uint32_t clock_mhz)> &time);
inline constexpr uint32_t most_clock_passes = 4;

} // namespace sluice::emulator::timing
