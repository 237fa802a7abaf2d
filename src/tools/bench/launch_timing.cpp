//===- launch_timing.cpp - a launch on the timing model: its sample and its figures ---------------------===//
#include "tools/bench/launch_timing.h"

#include "emulator/isa/timing_constants.h"

#include <algorithm>
#include <fmt/format.h>

namespace sluice::tools {

using namespace emulator::timing;

TimingOptions sample_of(const std::array<uint32_t, 3> &grid, const SampleSize &size) {
  TimingOptions options{
      .compute_units = size.compute_units, .workgroups = size.workgroups, .xcds = size.xcds};
  if (size.compute_units >= xcd_compute_units) return options;
  // If a step along y does not lead to another reader of the same keys, neighbours serve as well as any.
  if (grid[1] == 1) return options;
  uint32_t &stride = options.compute_unit_stride;
  while (stride < xcd_compute_units && device_xcds * stride % grid[0] != 0)
    ++stride;
  options.compute_units = std::min(size.compute_units, (xcd_compute_units - 1) / stride + 1);
  return options;
}

bool has_rounds(const TimingOptions &options) {
  return options.workgroups == 0 && options.compute_units == options.device.compute_units_of_xcd();
}

std::string error_text(const std::optional<double> &error_percent) {
  return error_percent ? fmt::format("{:.1f} %", *error_percent) : "unknown";
}

double hbm_terabytes_per_second() {
  return hbm_device_terabytes;
}

std::vector<WaitReason> wait_reasons(const TimingResult &result) {
  double all = 0;
  for (const uint64_t clk : result.stall_clk)
    all += double(clk);
  std::vector<WaitReason> reasons;
  for (size_t i = 0; i < stall_count; ++i)
    reasons.push_back({Stall(i), all == 0 ? 0 : 100 * double(result.stall_clk[i]) / all});
  std::stable_sort(reasons.begin(), reasons.end(),
                   [](const WaitReason &a, const WaitReason &b) { return a.percent > b.percent; });
  return reasons;
}

} // namespace sluice::tools
