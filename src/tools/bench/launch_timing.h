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
  uint32_t compute_units = 0; // the most that are simulated together
  uint32_t workgroups = 0;    // on each; 0: all it would get
  uint32_t xcds = 0;          // as in TimingOptions
};

/// The sample if the launch is too large to be simulated whole and no other size is requested.
inline constexpr SampleSize usual_sample = {.compute_units = 5, .workgroups = 8};

/// The sample of a launch. Neighbours in it read the same keys and values, as neighbours on an XCD do if the
/// grid allows: those that differ only in y.
emulator::timing::TimingOptions sample_of(const std::array<uint32_t, 3> &grid, const SampleSize &size);

/// Whether whole XCDs are simulated, and so all rounds as they are. In any other sample workgroups do not
/// follow one another and do not end the launch: it is a sample of the launch without rounds
/// (package/rounds.h).
bool has_rounds(const emulator::timing::TimingOptions &options);

/// "0.8 %"; "unknown" if the sample is too small to tell.
std::string error_text(const std::optional<double> &error_percent);

/// The bandwidth of HBM in the model, in TB/s.
double hbm_terabytes_per_second();

struct WaitReason {
  emulator::timing::Stall stall;
  double percent; // of all waiting
};
/// Reasons of waves' waits, most frequent first.
std::vector<WaitReason> wait_reasons(const emulator::timing::TimingResult &result);

} // namespace sluice::tools
