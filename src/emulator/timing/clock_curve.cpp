//===- clock_curve.cpp - the clock of a busy chip -------------------------------------------------------===//
#include "emulator/timing/clock_curve.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "emulator/timing/saved_memory.h"

namespace sluice::emulator::timing {

std::span<const ClockPoint> clock_points() {
  static constexpr ClockPoint points[] = {
      {0, clock_mhz, "assumed: the peak"},
      {34.0, 1740, "attn-dsl-bench counters, Triton d128, 16k"},
      {42.3, 1360, "attn-dsl-bench counters, AITER d64, 16k"},
      {72.1, 1120, "attn-dsl-bench counters, AITER d128, 16k"},
      {94.2, 1115, "ROCm blog on achievable FLOPs, fp16 GEMM: 654 TFLOPS"},
  };
  return points;
}

double published_clock_mhz(double mfma_percent) {
  const std::span<const ClockPoint> points = clock_points();
  const auto above = std::find_if(points.begin(), points.end(), [&](const ClockPoint &point) {
    return point.mfma_percent >= mfma_percent;
  });
  if (above == points.begin()) return above->clock_mhz;
  if (above == points.end()) return points.back().clock_mhz;
  const ClockPoint &below = *std::prev(above);
  return std::lerp(below.clock_mhz, above->clock_mhz,
                   (mfma_percent - below.mfma_percent) / (above->mfma_percent - below.mfma_percent));
}

TimingResult time_at_published_clock(const Memory &memory,
                                     const std::function<TimingResult(uint32_t clock_mhz)> &time) {
  const SavedMemory before(memory);
  TimingResult result = time(clock_mhz);
  for (uint32_t pass = 1; result.reports.empty(); ++pass) {
    const double wanted = published_clock_mhz(result.device_mfma_percent());
    if (std::abs(wanted - result.device.clock_mhz) <= 0.01 * wanted) break;
    if (pass == most_clock_passes) {
      result.warnings.push_back(std::to_string(pass) + " passes found no clock for the launch: at " +
                                std::to_string(result.device.clock_mhz) +
                                " MHz it keeps the matrix cores so busy that the chip's clock would be " +
                                std::to_string(std::lround(wanted)) + " MHz");
      break;
    }
    before.restore();
    result = time(uint32_t(std::lround(wanted)));
  }
  before.restore();
  return result;
}

} // namespace sluice::emulator::timing
