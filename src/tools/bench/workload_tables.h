//===- workload_tables.h - timings of workloads as tables and JSON --------------------------------------===//
#pragma once

#include "tools/bench/device_timing.h"
#include "tools/bench/plan_timing.h"

#include <optional>
#include <string>
#include <vector>

namespace sluice::tools {

/// A workload on the model, on a device, or on both.
struct WorkloadTiming {
  Workload work;
  std::optional<PlanTiming> model;
  std::optional<DeviceTiming> device;
};

/// A table's head and rows: in markdown, or in columns for a terminal.
class WorkloadTable {
public:
  /// `device`: a device's times beside the model's, instead of the model's clk and what explains them.
  WorkloadTable(bool markdown, bool device, bool model) : markdown(markdown), device(device), model(model) {}
  std::string head() const;
  std::string row(const WorkloadTiming &timing) const;

private:
  const bool markdown, device, model;
};

/// The timings as JSON, with their conditions and the device, if there is one.
std::string workloads_json(const std::vector<WorkloadTiming> &timings,
                           const std::optional<sluice_device_info> &device,
                           const std::optional<DeviceRuns> &runs);

} // namespace sluice::tools
