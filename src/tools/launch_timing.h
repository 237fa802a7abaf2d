//===- launch_timing.h - a launch on the timing model: its sample and its figures -----------------------===//
#pragma once

#include "emulator/timing/timing.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace sluice::tools {

struct SampleSize {
  uint32_t compute_units = 0; // most that are simulated together
  uint32_t workgroups = 0;    // of each; 0: all it would get
};

/// Where the launch is too large to be simulated whole, and nothing else is asked for.
inline constexpr SampleSize usual_sample = {.compute_units = 5, .workgroups = 8};

/// The sample of a launch. Neighbours in it read the same keys and values, as neighbours on an XCD do where
/// the grid lets them: those that differ in y alone.
emulator::timing::TimingOptions sample_of(const std::array<uint32_t, 3> &grid, const SampleSize &size);

/// Whether whole XCDs are simulated, and so all rounds as they are. Any other sample has workgroups that
/// neither follow each other nor end the launch: it is one of the launch without rounds (package/rounds.h).
bool has_rounds(const emulator::timing::TimingOptions &options);

/// "0.8 %"; "unknown" where the sample is too small to say.
std::string error_text(const std::optional<double> &error_percent);

/// What HBM can move, in TB/s, as the model has it.
double hbm_terabytes_per_second();

struct WaitReason {
  emulator::timing::Stall stall;
  double percent; // of all waiting
};
/// What waves waited for, most first.
std::vector<WaitReason> wait_reasons(const emulator::timing::TimingResult &result);

} // namespace sluice::tools
