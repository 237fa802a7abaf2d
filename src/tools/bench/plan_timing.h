//===- plan_timing.h - a workload's launches on the timing model ----------------------------------------===//
//
// The time that a run of a plan would take on the chip: the launches are those of the plan, with its choice
// of kernels and its split of the keys, one after another.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "tools/bench/launch_timing.h"
#include "tools/bench/recorded_plan.h"
#include "tools/bench/workload.h"
#include "tools/shared/pack_file.h"

#include <optional>
#include <string>
#include <vector>

namespace sluice::tools {

/// Nothing: all workgroups if they are few enough, else all of an XCD if those are, else eight on each of
/// five compute units.
using WantedSample = std::optional<SampleSize>;

struct LaunchTiming {
  std::string kernel;
  emulator::timing::TimingResult result;
  double bound_percent = 0; // of the usual path through the main loop; 0 without MFMAs
  double seconds = 0;       // the model took
};

struct PlanTiming {
  Workload work;
  std::string kernel, reason;         // of the plan
  uint32_t splits = 1;                // of the keys
  std::vector<LaunchTiming> launches; // attention, then the merge of its splits, if any

  uint64_t clk() const;
  /// The time of the launches after the first.
  uint64_t merge_clk() const;
  double microseconds() const;
  /// One standard error of clk(), in per cent; nothing if a launch's sample is too small to tell.
  std::optional<double> error_percent() const;
  /// The share of the time in which the device's matrix cores are busy.
  double mfma_percent() const;
};

/// Throws ToolError if the library refuses the workload, memory for the tensors is missing, or the machine
/// reports something.
PlanTiming time_plan(const PackFile &pack, const Workload &work, uint32_t compute_units,
                     const WantedSample &sample);

} // namespace sluice::tools
