//===- cheapest.cpp - the kernels and splits with the lowest estimated cost -----------------------------===//
#include "runtime/cheapest.h"

#include "runtime/split.h"
#include "support/checked.h"
#include "support/failure.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

namespace sluice::runtime {
namespace {

using support::divide_up;
using support::text;

// Estimates closer than this are equivalent. Preferred are fewer splits; then a decode kernel whose tile
// holds all rows, which wastes less of it on missing rows; then a prefill kernel without splits, which needs
// no workspace and leaves short sequences to a decode kernel.
constexpr double splits_margin = 1.01, kernel_margin = 1.1;
// The fewest tiles of a split if a sequence is shorter than its bound: with fewer, there is more merging than
// computing. Waves that share rows need one each.
constexpr uint64_t usual_least_tiles = 4;
// Without a bound of rows: the most rows of a sequence that a decode kernel gets beside prefill kernels.
constexpr int64_t most_few_rows = 1024;
// Rows times heads of a sequence that counts as a long chunk.
constexpr int64_t least_chunk_rows = 1024;

Candidate best_splits(const package::PackedKernel *kernel, const Workload &work, uint64_t most_splits,
                      uint32_t compute_units) {
  Candidate best{kernel, 1, estimate(kernel->entry, work, 1, compute_units)};
  const uint64_t tiles = tiles_seen(kernel->entry.name, work);
  // Each number of tiles per split once, with the fewest splits that give it.
  for (uint64_t splits = 2; splits <= std::min(tiles, most_splits);) {
    const uint64_t split_tiles = divide_up(tiles, splits);
    const Estimate found = estimate(kernel->entry, work, splits, compute_units);
    if (found.clk() * splits_margin < best.estimate.clk()) best = {kernel, splits, found};
    if (split_tiles == 1) break;
    splits = divide_up(tiles, split_tiles - 1);
  }
  return best;
}

std::string described(const Candidate &candidate) {
  std::string splits = candidate.splits > 1 ? text(" in ", candidate.splits, " splits") : std::string();
  return text(package::format_kernel_name(candidate.kernel->entry.name), splits, ", ",
              uint64_t(std::llround(candidate.estimate.clk())), " clk");
}

/// The fewest tiles of a split.
uint32_t min_split_tiles(const Candidate &candidate, const Workload &work) {
  const package::KernelName &name = candidate.kernel->entry.name;
  const uint64_t split_tiles = divide_up(tiles_seen(name, work), candidate.splits);
  return uint32_t(std::min(split_tiles, std::max(usual_least_tiles, uint64_t{name.waves_dividing_keys()})));
}

void use_for_few(Choice &choice, const Candidate &candidate, const sluice_problem &problem, int64_t rows,
                 const Workload &work) {
  choice.few = candidate.kernel;
  use_splits(choice, problem, candidate.splits, rows);
  choice.min_split_tiles = min_split_tiles(candidate, work);
}

/// The most rows of a sequence that the decode kernel gets, with its splits: doubled while it is cheaper than
/// the prefill kernels and the splits' workspace is below the ceiling.
int64_t last_few_rows(const Candidate &decode, const Kernels &prefill, const sluice_problem &problem,
                      int64_t few_rows, uint32_t compute_units) {
  const int64_t most = problem.max_q_len != 0 ? problem.max_q_len : most_few_rows;
  int64_t rows = few_rows;
  while (rows * 2 <= most) {
    const Workload more{problem, problem.max_batch, rows * 2, problem.max_kv_len};
    const double clk = estimate(decode.kernel->entry, more, decode.splits, compute_units).clk();
    if (clk * kernel_margin >= by_cost(prefill, more, 1, compute_units).front().estimate.clk()) break;
    if (decode.splits > most_splits(problem, rows * 2)) break;
    rows *= 2;
  }
  return rows;
}

/// The kernel for all sequences, if there is one: the best candidate, unless a prefill kernel without splits,
/// which takes `prefill_clk`, costs about as little.
std::optional<Candidate> one_for_all(const std::vector<Candidate> &candidates, double prefill_clk,
                                     const Workload &work) {
  const double most = candidates.front().estimate.clk() * kernel_margin;
  const int64_t rows = work.rows * (work.problem.q_heads / work.problem.kv_heads);
  const auto holding = std::ranges::find_if(candidates, [&](const Candidate &candidate) {
    const package::KernelName &name = candidate.kernel->entry.name;
    return !name.is_prefill() && name.tile_q >= rows && candidate.estimate.clk() < most;
  });
  if (holding != candidates.end()) return *holding;
  return most < prefill_clk ? std::optional(candidates.front()) : std::nullopt;
}

} // namespace

std::vector<Candidate> by_cost(const Kernels &kernels, const Workload &work, uint64_t most_splits,
                               uint32_t compute_units) {
  std::vector<Candidate> candidates;
  for (const package::PackedKernel *kernel : kernels)
    candidates.push_back(best_splits(kernel, work, most_splits, compute_units));
  std::stable_sort(candidates.begin(), candidates.end(), [](const Candidate &a, const Candidate &b) {
    return a.estimate.clk() < b.estimate.clk();
  });
  return candidates;
}

void choose_by_cost(Choice &choice, const Kernels &prefill, const Kernels &decode,
                    const sluice_problem &problem, int64_t few_rows, bool can_merge, uint32_t compute_units) {
  // Without a bound of rows, assume prompts as long as all keys.
  const int64_t rows = problem.max_q_len != 0 ? problem.max_q_len : problem.max_kv_len;
  const auto splits_of = [&](int64_t count) { return can_merge ? most_splits(problem, count) : 1; };
  const Workload work{problem, problem.max_batch, rows, problem.max_kv_len};
  const bool may_be_prefill =
      !prefill.empty() && (decode.empty() || problem.max_q_len == 0 || rows > few_rows);
  std::vector<Candidate> of_many;
  if (may_be_prefill) of_many = by_cost(prefill, work, 1, compute_units);
  // A plan with splits has a single kernel, so a prefill kernel would also get sequences of few rows: for
  // several sequences allow that only if they have long chunks.
  const int64_t group = problem.q_heads / problem.kv_heads;
  const bool has_splits = problem.max_batch == 1 || rows * group >= least_chunk_rows;
  std::vector<Candidate> candidates = by_cost(decode, work, splits_of(rows), compute_units);
  if (may_be_prefill) {
    const auto prefills = by_cost(prefill, work, has_splits ? splits_of(rows) : 1, compute_units);
    candidates.insert(candidates.end(), prefills.begin(), prefills.end());
    std::ranges::stable_sort(candidates, {}, [](const Candidate &one) { return one.estimate.clk(); });
  }
  const double prefill_clk =
      may_be_prefill ? of_many.front().estimate.clk() : std::numeric_limits<double>::infinity();
  std::optional<Candidate> chosen;
  // Without a bound of rows splits have no workspace, and there are prefill kernels.
  if (problem.max_q_len != 0) chosen = one_for_all(candidates, prefill_clk, work);
  if (chosen) {
    choice.few_rows = INT32_MAX;
    use_for_few(choice, *chosen, problem, rows, work);
  } else {
    chosen = of_many.front();
    choice.many = chosen->kernel;
    if (!decode.empty()) {
      const Workload few{problem, problem.max_batch, few_rows, problem.max_kv_len};
      const Candidate best = by_cost(decode, few, splits_of(few_rows), compute_units).front();
      const int64_t last = last_few_rows(best, prefill, problem, few_rows, compute_units);
      choice.few_rows = int32_t(last);
      use_for_few(choice, best, problem, last, few);
    }
  }
  choice.estimate = chosen->estimate;
  choice.reason = text("about ", uint64_t(std::llround(chosen->estimate.clk())), " clk (",
                       uint64_t(std::llround(chosen->estimate.microseconds())), " us)");
  const auto next = std::find_if(candidates.begin(), candidates.end(),
                                 [&](const Candidate &other) { return other.kernel != chosen->kernel; });
  if (next != candidates.end()) choice.reason += text("; next: ", described(*next));
}

std::string choose_prefix_by_cost(Choice &choice, const Kernels &kernels, const sluice_problem &problem,
                                  uint32_t compute_units) {
  sluice_problem of_prefix = problem; // which all its rows see completely
  of_prefix.flags &= ~uint32_t{SLUICE_CAUSAL};
  of_prefix.o_type = SLUICE_F32;
  const Workload work{of_prefix, problem.max_prefixes,
                      divide_up(problem.max_q_tokens, int64_t{problem.max_prefixes}), problem.max_prefix_len};
  const uint64_t most = most_prefix_splits(problem, choice.splits);
  const Candidate best = by_cost(kernels, work, most, compute_units).front();
  choice.prefix = {best.kernel, uint32_t(best.splits), 0, min_split_tiles(best, work), choice.splits};
  return text(", ", uint64_t(std::llround(best.estimate.clk())), " clk");
}

} // namespace sluice::runtime
