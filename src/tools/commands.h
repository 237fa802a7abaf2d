//===- commands.h - the commands of the command line ----------------------------------------------------===//
//
// Each writes its result to stdout and returns the exit status: 0, or 1 if it compared and found a
// difference. If it cannot do its work it throws an exception, which main reports on stderr with status 2.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "tools/attention_call.h"
#include "tools/device_timing.h"
#include "tools/workload_options.h"

#include <cstdint>
#include <optional>
#include <string>

namespace sluice::tools {

int info_command();

struct KernelsOptions {
  std::string device = "gfx942:304";
  bool stats = false;
  bool markdown = false;
};
int kernels_command(const KernelsOptions &options);

struct FeaturesOptions {
  std::string device = "gfx942:304";
};
int features_command(const FeaturesOptions &options);

struct RunOptions {
  CallOptions call;
  std::string o_file, lse_file;
};
int run_command(const RunOptions &options);

struct VerifyOptions {
  CallOptions call;
  std::string o_file, lse_file;               // results to judge, instead of running the call
  std::string expect_o_file, expect_lse_file; // expectations, instead of the reference
};
int verify_command(const VerifyOptions &options);

struct InspectOptions {
  std::string file;    // a pack, or a library that contains one; empty: the library in use
  std::string extract; // a kernel's name
  std::string elf_file, bundle_file;
  std::string chip = "gfx942";
};
int inspect_command(const InspectOptions &options);

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
int bench_command(const BenchOptions &options);

} // namespace sluice::tools
