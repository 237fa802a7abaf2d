//===- attention_timing.cpp - an attention launch on the timing model -----------------------------------===//
#include "tools/bench/attention_timing.h"

#include "calls/args.h"
#include "emulator/isa/timing_constants.h"
#include "emulator/machine/program.h"
#include "emulator/stats/kernel_stats.h"
#include "package/rounds.h"
#include "tools/bench/workload_tensors.h"
#include "tools/shared/tool_error.h"

#include <algorithm>
#include <chrono>
#include <fmt/format.h>
#include <numeric>

namespace sluice::tools {

using namespace emulator::timing;

namespace {

Workload workload_of(const package::KernelEntry &kernel, const TimedProblem &problem) {
  const auto types = element_types();
  const auto named = std::find_if(types.begin(), types.end(),
                                  [&](const ElementTypes &type) { return type.name == kernel.name.dtype; });
  if (named == types.end() || !kernel.name.kv_dtype.empty() || !kernel.name.o_dtype.empty())
    throw ToolError(fmt::format("{}: only kernels for one type are timed without a plan",
                                package::format_kernel_name(kernel.name)));
  return {.kind = WorkKind::prefill,
          .types = *named,
          .dims = {kernel.name.head_dim_qk, kernel.name.head_dim_v},
          .q_heads = problem.q_heads,
          .kv_heads = problem.kv_heads,
          .batch = problem.batch,
          .q_len = problem.length,
          .kv_len = problem.length,
          .causal = problem.causal};
}

package::AttentionAddresses addresses_of(const calls::Args &args) {
  const auto address = [](const sluice_tensor &tensor) { return reinterpret_cast<uint64_t>(tensor.data); };
  return {.q = address(args.q), .k = address(args.k), .v = address(args.v), .o = address(args.o), .lse = 0};
}

/// The matrix cores' time on the simulated compute units, then on the device: the idle time of the device
/// while it has workgroups is divided in the same proportions.
TimeParts parts_of(const AttentionTiming &timing, const emulator::Program &program,
                   const emulator::KernelStats &stats) {
  const TimingResult &result = timing.result;
  TimeParts idle;
  const auto in_loop = [&](uint64_t address) {
    return std::any_of(stats.loops.begin(), stats.loops.end(), [&](const emulator::LoopStats &loop) {
      return address >= loop.first && address <= loop.last;
    });
  };
  double rest = double(result.simulated_clk) * result.compute_units * simds -
                double(result.busy_clk[size_t(Pipe::matrix)]);
  const auto take = [&](double &part, uint64_t clk) {
    part += double(clk);
    rest -= double(clk);
  };
  take(idle.start, result.idle.start);
  for (uint32_t op = 0; op < result.instructions.size(); ++op) {
    const InstructionTime &time = result.instructions[op];
    if (time.issued == 0 || !in_loop(program.impl().address_of(op))) continue;
    take(idle.issuing, time.idle_issuing_clk);
    for (size_t i = 0; i < stall_count; ++i)
      take(idle.waiting[i], time.idle_clk[i]);
  }
  idle.outside = std::max(rest, 0.0);

  TimeParts parts;
  const double busy = result.device_mfma_percent();
  parts.useful = busy * std::min(1.0, timing.useful_flops() / result.device_flops);
  parts.masked = busy - parts.useful;
  parts.tail = result.tail_percent();
  const double factor = (100 - busy - parts.tail) / idle.sum();
  parts.issuing = idle.issuing * factor;
  for (size_t i = 0; i < stall_count; ++i)
    parts.waiting[i] = idle.waiting[i] * factor;
  parts.outside = idle.outside * factor;
  parts.start = idle.start * factor;
  return parts;
}

} // namespace

double TimeParts::sum() const {
  return useful + masked + issuing + std::accumulate(waiting.begin(), waiting.end(), 0.0) + outside + start +
         tail;
}

double AttentionTiming::useful_flops() const {
  return workload_of(kernel, problem).useful_flops();
}

double AttentionTiming::useful_tflops(double mhz) const {
  return useful_flops() / double(result.device_clk) * mhz * 1e-6;
}

void check_size(const package::KernelEntry &kernel, const TimedProblem &problem) {
  check_size(workload_of(kernel, problem));
}

AttentionTiming time_attention(const package::KernelEntry &kernel, std::span<const std::byte> elf,
                               const TimedProblem &problem, const SampleSize &size) {
  const emulator::Program program(std::vector<std::byte>(elf.begin(), elf.end()));
  const Workload work = workload_of(kernel, problem);
  ModelMemory memory(work, 0);
  const auto length = int32_t(problem.length);
  package::AttentionLaunch launch = package::contiguous_launch(
      kernel,
      {.batch = problem.batch,
       .q_len = length,
       .kv_len = length,
       .q_heads = problem.q_heads,
       .kv_heads = problem.kv_heads,
       .mask = problem.causal ? package::AttentionShape::bottom_right : package::AttentionShape::none},
      addresses_of(make_tensors(work, memory)));
  const TimingOptions options = sample_of(launch.grid, size);
  if (has_rounds(options))
    package::use_rounds(kernel, options.device.compute_units, launch.arguments, launch.grid);
  AttentionTiming timing{.kernel = kernel, .problem = problem, .result = {}, .parts = {}};
  const auto start = std::chrono::steady_clock::now();
  timing.result = time_launch(program, launch.kernel, launch.grid, launch.block, 0, launch.kernarg(),
                              memory.machine(), options);
  timing.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (!timing.result.reports.empty())
    throw ToolError(launch.kernel + ": " + emulator::to_text(timing.result.reports.front()));
  const emulator::KernelStats stats = emulator::kernel_stats(elf, launch.kernel);
  if (stats.way) timing.bound_percent = stats.way->bound.percent;
  timing.parts = parts_of(timing, program, stats);
  return timing;
}

} // namespace sluice::tools
