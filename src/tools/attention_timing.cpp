//===- attention_timing.cpp - an attention launch on the timing model -----------------------------------===//
#include "tools/attention_timing.h"

#include "emulator/machine/program.h"
#include "emulator/stats/kernel_stats.h"
#include "emulator/timing/constants.h"
#include "support/half.h"
#include "tools/tool_error.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <fmt/format.h>
#include <numeric>
#include <random>

namespace sluice::tools {

using namespace emulator::timing;

namespace {

constexpr uint64_t most_bytes = uint64_t(8) << 30;
constexpr size_t pattern_elements = 1048573; // a prime: no two heads or tokens get the same numbers

/// Numbers between -2 and 2, so that scores are spread as those of attention are.
void fill(void *tensor, size_t elements, bool is_bf16, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<uint16_t> pattern(std::min(elements, pattern_elements));
  for (uint16_t &element : pattern) {
    const float number = float(int32_t(random())) * 0x1p-30f;
    element = is_bf16 ? support::bf16_from_float(number) : support::f16_from_float(number);
  }
  auto *const to = static_cast<uint16_t *>(tensor);
  for (size_t n = 0; n < elements; n += pattern.size())
    std::memcpy(to + n, pattern.data(), std::min(pattern.size(), elements - n) * sizeof(uint16_t));
}

/// In one block that begins where a way of the largest cache does: which lines share a set, and so the time,
/// depends on nothing but the problem.
class Tensors {
public:
  Tensors(const package::KernelEntry &kernel, const TimedProblem &problem) {
    const bool is_bf16 = kernel.name.dtype == "bf16";
    const uint64_t rows = uint64_t(problem.batch) * problem.length;
    const uint64_t q_row = uint64_t(problem.q_heads) * kernel.name.head_dim_qk;
    const uint64_t k_row = uint64_t(problem.kv_heads) * kernel.name.head_dim_qk;
    const uint64_t v_row = uint64_t(problem.kv_heads) * kernel.name.head_dim_v;
    const uint64_t o_row = uint64_t(problem.q_heads) * kernel.name.head_dim_v;
    constexpr uint64_t way = mall_bytes / mall_ways;
    const uint64_t bytes = rows * (q_row + k_row + v_row + o_row) * sizeof(uint16_t) + way;
    void *const block = memory.allocate(bytes);
    if (!block) throw ToolError(fmt::format("no memory for tensors of {} bytes", bytes));
    uint64_t next = (reinterpret_cast<uint64_t>(block) + way - 1) / way * way;
    const auto add = [&](uint64_t elements, uint32_t seed) {
      const uint64_t tensor = next;
      next += elements * sizeof(uint16_t);
      if (seed != 0) fill(reinterpret_cast<void *>(tensor), elements, is_bf16, seed);
      return tensor;
    };
    addresses = {.q = add(rows * q_row, 1),
                 .k = add(rows * k_row, 2),
                 .v = add(rows * v_row, 3),
                 .o = add(rows * o_row, 0),
                 .lse = 0};
  }

  emulator::Memory memory;
  package::AttentionAddresses addresses{};
};

double percent(double part, double whole) {
  return whole == 0 ? 0 : 100 * part / whole;
}

/// The matrix cores' time on the simulated compute units, then on the device: what is idle there while there
/// are workgroups is divided as it is here.
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
  parts.tail = 100 - percent(result.device_occupied_clk, double(result.device_clk) * result.device_places);
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
  const double pairs = double(problem.length) * problem.length * (problem.causal ? 0.5 : 1);
  return 2.0 * (kernel.name.head_dim_qk + kernel.name.head_dim_v) * pairs * problem.q_heads * problem.batch;
}

double AttentionTiming::useful_tflops(double mhz) const {
  return useful_flops() / double(result.device_clk) * mhz * 1e-6;
}

std::vector<AttentionTiming::Reason> AttentionTiming::reasons() const {
  double all = 0;
  for (const uint64_t clk : result.stall_clk)
    all += double(clk);
  std::vector<Reason> reasons;
  for (size_t i = 0; i < stall_count; ++i)
    reasons.push_back({Stall(i), percent(double(result.stall_clk[i]), all)});
  std::stable_sort(reasons.begin(), reasons.end(),
                   [](const Reason &a, const Reason &b) { return a.percent > b.percent; });
  return reasons;
}

TimingOptions sample_of(const TimedProblem &problem, const SampleSize &size) {
  TimingOptions options{.compute_units = size.compute_units, .workgroups = size.workgroups};
  if (size.compute_units >= xcd_compute_units) return options;
  // Heads come first in the grid, so that an XCD has each eighth of them.
  const uint32_t group = problem.q_heads / problem.kv_heads;
  uint32_t &stride = options.compute_unit_stride;
  while (stride < xcd_compute_units && device_xcds * stride % problem.q_heads / group != 0)
    ++stride;
  options.compute_units = std::min(size.compute_units, (xcd_compute_units - 1) / stride + 1);
  return options;
}

void check_size(const package::KernelEntry &kernel, const TimedProblem &problem) {
  const uint64_t row_elements =
      uint64_t(problem.q_heads + problem.kv_heads) * (kernel.name.head_dim_qk + kernel.name.head_dim_v);
  const uint64_t bytes = uint64_t(problem.batch) * problem.length * row_elements * sizeof(uint16_t);
  if (bytes > most_bytes)
    throw ToolError(
        fmt::format("{} sequences of {} tokens, {} heads of queries and {} of keys have {} bytes; {} is "
                    "the most: choose less of --batch, --lengths, --heads or --kv-heads",
                    problem.batch, problem.length, problem.q_heads, problem.kv_heads, bytes, most_bytes));
}

AttentionTiming time_attention(const package::KernelEntry &kernel, std::span<const std::byte> elf,
                               const TimedProblem &problem, const SampleSize &size) {
  const emulator::Program program(std::vector<std::byte>(elf.begin(), elf.end()));
  const Tensors tensors(kernel, problem);
  const auto length = int32_t(problem.length);
  const package::AttentionLaunch launch = package::contiguous_launch(
      kernel,
      {.batch = problem.batch,
       .q_len = length,
       .kv_len = length,
       .q_heads = problem.q_heads,
       .kv_heads = problem.kv_heads,
       .mask = problem.causal ? package::AttentionShape::bottom_right : package::AttentionShape::none},
      tensors.addresses);
  AttentionTiming timing{.kernel = kernel, .problem = problem, .result = {}, .parts = {}};
  const auto start = std::chrono::steady_clock::now();
  timing.result = time_launch(program, launch.kernel, launch.grid, launch.block, 0, launch.kernarg(),
                              tensors.memory, sample_of(problem, size));
  timing.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (!timing.result.reports.empty())
    throw ToolError(launch.kernel + ": " + emulator::to_text(timing.result.reports.front()));
  const emulator::KernelStats stats = emulator::kernel_stats(elf, launch.kernel);
  if (stats.way) timing.bound_percent = stats.way->bound.percent;
  timing.parts = parts_of(timing, program, stats);
  return timing;
}

} // namespace sluice::tools
