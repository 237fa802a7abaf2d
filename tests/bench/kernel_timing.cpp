//===- kernel_timing.cpp - attention kernels on the timing model ----------------------------------------===//
//
//   kernel_timing PACK
//
// The share of the time that matrix cores are busy with each shipped kernel, beside the bound that its
// instructions set, and how fast the model runs.
//
//===----------------------------------------------------------------------------------------------------===//
#include <chrono>
#include <cstdio>

#include "emulator/stats/kernel_stats.h"
#include "emulator/timing/timing.h"
#include "kernels/emulated_run.h"
#include "kernels/shipped_kernels.h"

namespace {

using namespace sluice;
using namespace sluice::test;

// 1024 tokens of 64 heads, no mask: one workgroup at least for each compute unit.
constexpr Problem problem{.name = "long",
                          .q_tiles = 8,
                          .q_rest = 0,
                          .kv_len = 1024,
                          .q_heads = 64,
                          .kv_heads = 8,
                          .mask = Problem::none,
                          .lse = false,
                          .values = Problem::usual,
                          .completion = emulator::CompletionOrder::late};
// Workgroups of neighbouring compute units read the same keys and values.
constexpr emulator::timing::TimingOptions options{.compute_units = 4, .workgroups = 2};

} // namespace

int main(int argc, char **argv) try {
  if (argc < 2) throw std::runtime_error("usage: kernel_timing PACK");
  std::printf(
      "| kernel | MFMA busy while full | of the launch | bound of the loop | waits for | instructions/s |\n"
      "| --- | --- | --- | --- | --- | --- |\n");
  for (const ShippedKernel &kernel : read_arguments({argv + 1, argv + argc})) {
    const emulator::Program program(kernel.elf);
    AttentionRun run(kernel.entry, problem);
    const package::AttentionLaunch call = run.call();
    const auto start = std::chrono::steady_clock::now();
    const auto result = emulator::timing::time_launch(program, call.kernel, call.grid, call.block, 0,
                                                      call.kernarg(), run.device_memory(), options);
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    if (!result.reports.empty()) throw std::runtime_error(to_text(result.reports.front()));
    size_t most = 0;
    for (size_t i = 0; i < emulator::timing::stall_count; ++i)
      if (result.stall_clk[i] > result.stall_clk[most]) most = i;
    const auto stats = emulator::kernel_stats(kernel.elf, call.kernel);
    std::printf("| %s | %.1f %% | %.1f %% | %.1f %% | %s | %.2f M |\n", kernel.name.c_str(),
                result.simulated_mfma_percent(), result.device_mfma_percent(),
                stats.way ? stats.way->mix.bound_percent() : 0,
                std::string(stall_name(emulator::timing::Stall(most))).c_str(),
                double(result.wave_instructions) / seconds.count() * 1e-6);
    std::fflush(stdout);
  }
  return 0;
} catch (const std::exception &error) {
  std::fprintf(stderr, "kernel_timing: %s\n", error.what());
  return 1;
}
