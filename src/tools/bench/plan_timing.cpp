//===- plan_timing.cpp - a workload's launches on the timing model --------------------------------------===//
#include "tools/bench/plan_timing.h"

#include "calls/args.h"
#include "emulator/isa/timing_constants.h"
#include "emulator/machine/program.h"
#include "emulator/stats/kernel_stats.h"
#include "package/kernargs.h"
#include "tools/bench/workload_tensors.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <fmt/format.h>

namespace sluice::tools {

using namespace emulator::timing;

namespace {

// The most loop iterations of waves that the model simulates for one launch if no sample is requested, on all
// XCDs or else on one: at most half a minute of a core, at some thousand instructions each.
constexpr uint64_t most_wave_tiles = 40000;

uint32_t splits_of(const RecordedLaunch &launch) {
  const std::optional<package::AttentionKernargs> arguments = launch.attention_arguments();
  return arguments ? arguments->splits : 1;
}

/// Approximate iterations of the launch's waves over tiles of keys.
uint64_t wave_tiles(const RecordedLaunch &launch, const package::KernelName &name) {
  const uint64_t workgroups = uint64_t(launch.grid[0]) * launch.grid[1] * launch.grid[2];
  const std::optional<package::AttentionKernargs> arguments = launch.attention_arguments();
  if (!arguments) return workgroups; // a merge is short
  const uint64_t tiles = uint32_t(arguments->kv_len) / name.tile_kv / arguments->splits + 1;
  return workgroups * tiles * name.waves / name.waves_dividing_keys();
}

TimingOptions options_of(const RecordedLaunch &launch, const package::KernelName &name,
                         uint32_t compute_units, const WantedSample &wanted) {
  const Device device = {.compute_units = compute_units};
  const uint64_t tiles = wave_tiles(launch, name);
  const SampleSize whole = {device.compute_units_of_xcd(), 0};
  const SampleSize size = wanted ? *wanted : tiles / device_xcds <= most_wave_tiles ? whole : usual_sample;
  TimingOptions options = sample_of(launch.grid, size);
  if (!wanted && tiles <= most_wave_tiles) options.xcds = device_xcds;
  options.device = device;
  return options;
}

LaunchTiming time_recorded(const PackFile &pack, const RecordedLaunch &recorded, const ModelMemory &memory,
                           uint32_t compute_units, const WantedSample &wanted) {
  const package::PackedKernel &kernel = pack.kernel(recorded.kernel);
  const RecordedLaunch plain = recorded.without_rounds();
  const TimingOptions options = options_of(plain, kernel.entry.name, compute_units, wanted);
  const RecordedLaunch &launch = has_rounds(options) ? recorded : plain;
  const std::vector<std::byte> elf = pack.elf(kernel, "gfx942");
  const emulator::Program program{std::vector<std::byte>(elf)};
  LaunchTiming timing{.kernel = launch.kernel, .result = {}};
  const auto start = std::chrono::steady_clock::now();
  timing.result = time_launch(program, launch.kernel, launch.grid, launch.block, launch.dynamic_lds_bytes,
                              launch.kernarg, memory.machine(), options);
  timing.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (!timing.result.reports.empty())
    throw ToolError(launch.kernel + ": " + emulator::to_text(timing.result.reports.front()));
  const emulator::KernelStats stats = emulator::kernel_stats(elf, launch.kernel);
  if (stats.way) timing.bound_percent = stats.way->bound.percent;
  return timing;
}

} // namespace

uint64_t PlanTiming::clk() const {
  uint64_t sum = 0;
  for (const LaunchTiming &launch : launches)
    sum += launch.result.device_clk;
  return sum;
}

uint64_t PlanTiming::merge_clk() const {
  return clk() - launches.front().result.device_clk;
}

double PlanTiming::microseconds() const {
  return double(clk()) / launches.front().result.device.clock_mhz;
}

std::optional<double> PlanTiming::error_percent() const {
  double squares = 0; // launches are sampled independently of one another
  for (const LaunchTiming &launch : launches) {
    if (!launch.result.error_percent) return std::nullopt;
    const double error = *launch.result.error_percent * double(launch.result.device_clk);
    squares += error * error;
  }
  return std::sqrt(squares) / double(clk());
}

double PlanTiming::mfma_percent() const {
  double busy = 0;
  for (const LaunchTiming &launch : launches)
    busy += launch.result.device_mfma_percent() * double(launch.result.device_clk);
  return busy / double(clk());
}

PlanTiming time_plan(const PackFile &pack, const Workload &work, uint32_t compute_units,
                     const WantedSample &sample) {
  RecordedPlan plan(pack, compute_units, work.problem());
  ModelMemory memory(work, plan.info().workspace_bytes);
  const calls::Args args = make_tensors(work, memory);
  void *const workspace =
      plan.info().workspace_bytes != 0 ? memory.allocate(plan.info().workspace_bytes) : nullptr;
  if (workspace) fill_partial_results(memory, workspace, plan.info().workspace_bytes);
  const std::vector<RecordedLaunch> launches = plan.run(args, workspace);
  PlanTiming timing{.work = work, .kernel = plan.info().kernel, .reason = plan.info().reason, .launches = {}};
  timing.splits = splits_of(launches.front());
  for (const RecordedLaunch &launch : launches)
    timing.launches.push_back(time_recorded(pack, launch, memory, compute_units, sample));
  return timing;
}

} // namespace sluice::tools
