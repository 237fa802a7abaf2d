//===- device_timing.h - a workload timed on a GPU ------------------------------------------------------===//
//
// Times with HIP's events around a run of the plan that an engine would make. Between runs it fills a block
// of memory that is larger than all caches. This evicts the workload's data, and gives the host time to
// enqueue the run before the device reaches it.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "tools/bench/workload.h"
#include "tools/shared/context.h"

#include <string>
#include <vector>

namespace sluice::tools {

struct DeviceRuns {
  uint32_t warm_up = 10;     // runs that are not counted
  uint32_t repetitions = 30; // runs that are
  uint32_t flush_mib = 512;  // filled before each run; 0: none
};

struct DeviceTiming {
  std::string kernel, reason;       // of the plan
  std::vector<double> microseconds; // of each run, sorted

  double least() const { return microseconds.front(); }
  double most() const { return microseconds.back(); }
  double median() const;
};

/// Throws ToolError if the library refuses the workload or HIP a call.
DeviceTiming time_on_device(sluice_context *context, const Workload &work, const DeviceRuns &runs);

/// Describes the device of a context.
sluice_device_info device_info(const sluice_context *context);

/// Whether it is the emulator in place of a GPU: a launch then takes as long as this machine needs.
bool is_emulated(const sluice_device_info &info);

} // namespace sluice::tools
