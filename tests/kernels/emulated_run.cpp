//===- emulated_run.cpp - attention launches on the emulator, and what it reports
//----------------------------===//
#include "emulated_run.h"

#include "support/half.h"

#include <algorithm>
#include <cmath>
#include <new>

namespace sluice::test {

using emulator::CompletionOrder;

std::span<const Problem> path_problems() {
  static constexpr Problem problems[] = {
      {"several tiles and a tail", 0, 70, 4 * 64 + 17, 1, 1, Problem::none, true, Problem::usual,
       CompletionOrder::late},
      {"causal, grouped heads, two workgroups", 1, 19, 3 * 64 + 5, 2, 1, Problem::bottom_right, true,
       Problem::growing, CompletionOrder::random},
      {"causal from the top, whole tiles", 1, 0, 4 * 64, 1, 1, Problem::top_left, false, Problem::usual,
       CompletionOrder::random},
      {"whole tiles, whose maximum stays", 1, 0, 6 * 64, 1, 1, Problem::none, true, Problem::zero_keys,
       CompletionOrder::late},
      {"odd tiles, whose maximum grows", 0, 64, 7 * 64, 1, 1, Problem::none, false, Problem::growing,
       CompletionOrder::random},
      {"two tiles, V infinite", 0, 33, 2 * 64 - 1, 1, 1, Problem::bottom_right, true, Problem::infinite,
       CompletionOrder::late},
      {"one key, one query", 0, 1, 1, 1, 1, Problem::none, true, Problem::usual, CompletionOrder::late},
      {"no key", 0, 40, 0, 1, 1, Problem::none, true, Problem::usual, CompletionOrder::random},
  };
  return problems;
}

AttentionRun::AttentionRun(const package::KernelEntry &kernel, const Problem &problem)
    : kernel(kernel), problem(problem), head_dim(kernel.name.head_dim_qk),
      q_len(size_t(problem.q_tiles) * kernel.name.tile_q + problem.q_rest) {
  const size_t q_rows = q_len * problem.q_heads, kv_rows = size_t(problem.kv_len) * problem.kv_heads;
  q = allocate(q_rows * head_dim);
  o = allocate(q_rows * head_dim);
  lse = problem.lse ? allocate(q_rows * 2) : nullptr;
  // A tensor without a row still has an address.
  k = allocate(std::max<size_t>(kv_rows, 1) * head_dim);
  v = allocate(std::max<size_t>(kv_rows, 1) * head_dim);
  fill(q, q_rows * head_dim, 1, problem.values == Problem::growing ? 0 : 2);
  fill(k, kv_rows * head_dim, 2, problem.values == Problem::zero_keys ? 0 : 2);
  fill(v, kv_rows * head_dim, 3, 2);
  shape_values();
}

uint16_t *AttentionRun::allocate(size_t elements) {
  void *block = memory.allocate(elements * sizeof(uint16_t));
  if (!block) throw std::bad_alloc();
  return static_cast<uint16_t *>(block);
}

/// Numbers between -spread and spread.
void AttentionRun::fill(uint16_t *tensor, size_t elements, uint32_t seed, float spread) {
  for (size_t n = 0; n < elements; ++n) {
    const uint32_t random = (uint32_t(n) * 2654435761u + seed * 0x9e3779b9u) >> 16;
    const float number = (float(random) / 32768 - 1) * spread;
    tensor[n] =
        kernel.name.dtype == "bf16" ? support::bf16_from_float(number) : support::f16_from_float(number);
  }
}

void AttentionRun::shape_values() {
  const bool is_bf16 = kernel.name.dtype == "bf16";
  const auto number = [&](float value) {
    return is_bf16 ? support::bf16_from_float(value) : support::f16_from_float(value);
  };
  if (problem.values == Problem::growing) {
    // The score of a key is its number, by way of the first component.
    for (size_t row = 0; row < q_len * problem.q_heads; ++row)
      q[row * head_dim] = number(std::sqrt(float(head_dim)));
    for (size_t row = 0; row < size_t(problem.kv_len) * problem.kv_heads; ++row)
      k[row * head_dim] = number(float(row / problem.kv_heads));
  }
  if (problem.values == Problem::level) {
    std::fill_n(q, q_len * problem.q_heads * head_dim, number(300));
    const size_t elements = size_t(problem.kv_len) * problem.kv_heads * head_dim;
    std::fill_n(k, elements, number(300));
    std::fill_n(v, elements / 2, number(1));
    std::fill_n(v + elements / 2, elements - elements / 2, number(-1));
  }
  if (problem.values == Problem::infinite)
    for (size_t column = 0; column < head_dim; ++column)
      v[(size_t(problem.kv_len) * problem.kv_heads - 1) * head_dim + column] = number(INFINITY);
}

emulator::LaunchResult AttentionRun::run(const emulator::Program &program, bool stop_at_report) {
  emulator::Options options;
  options.completion = problem.completion;
  options.threads = 1;
  options.stop_at_report = stop_at_report;
  options.count_bank_conflicts = !stop_at_report;
  return run(program, options);
}

package::AttentionLaunch AttentionRun::call() {
  const auto address = [](const uint16_t *tensor) { return reinterpret_cast<uint64_t>(tensor); };
  const auto q_rows = int32_t(q_len), kv_rows = int32_t(problem.kv_len);
  const package::AttentionShape shape{.batch = 1,
                                      .q_len = q_rows,
                                      .kv_len = kv_rows,
                                      .q_heads = problem.q_heads,
                                      .kv_heads = problem.kv_heads,
                                      .mask = problem.mask == Problem::none ? package::AttentionShape::none
                                              : problem.mask == Problem::bottom_right
                                                  ? package::AttentionShape::bottom_right
                                                  : package::AttentionShape::top_left};
  clear_output();
  return package::contiguous_launch(kernel, shape,
                                    {address(q), address(k), address(v), address(o), address(lse)});
}

emulator::LaunchResult AttentionRun::run(const emulator::Program &program, const emulator::Options &options) {
  const package::AttentionLaunch c = call();
  return emulator::launch(program, c.kernel, c.grid, c.block, 0, c.kernarg(), memory, options);
}

/// What a run does not write must not look as if it had.
void AttentionRun::clear_output() {
  const size_t rows = q_len * problem.q_heads;
  std::fill_n(o, rows * head_dim, uint16_t(0xa5a5));
  if (lse) std::fill_n(lse, rows * 2, uint16_t(0xa5a5));
}

std::vector<uint16_t> AttentionRun::output() const {
  const size_t rows = q_len * problem.q_heads;
  std::vector<uint16_t> result(o, o + rows * head_dim);
  if (lse) result.insert(result.end(), lse, lse + rows * 2);
  return result;
}

} // namespace sluice::test
