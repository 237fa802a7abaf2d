//===- bench_options.h - the options of sluice bench ----------------------------------------------------===//
#pragma once

#include "tools/bench/device_timing.h"
#include "tools/bench/workload_options.h"

#include <cstdint>
#include <optional>
#include <string>

namespace CLI {
class App;
}

namespace sluice::tools {

struct BenchOptions {
  bool timing = false; // on the model
  std::string device;  // on a GPU, "hip:N"; empty: no
  /// Prefill with each kernel whose name matches, without a plan; nothing: a plan chooses.
  std::optional<std::string> kernel_filter;
  WorkloadOptions work;
  std::optional<uint32_t> workgroups, compute_units; // of the sample; nothing: see plan_timing.h
  uint32_t xcds = 0;                                 // of the sample; 0: the model decides
  DeviceRuns runs;
  bool no_model = false; // with a device
  std::string json_file;
  bool markdown = false;
  bool parts = false;
  std::string pack_file; // empty: the library in use
};

/// Adds the command, without its action; `bench` must outlive the parsing.
void add_bench(CLI::App &app, BenchOptions &bench);

} // namespace sluice::tools
