//===- cheapest.cpp - the kernels and parts that are estimated to cost least ----------------------------===//
#include "runtime/cheapest.h"

#include "runtime/split.h"
#include "support/checked.h"
#include "support/failure.h"

#include <algorithm>
#include <cmath>
#include <optional>

namespace sluice::runtime {
namespace {

using support::divide_up;
using support::text;

// Estimates closer than this say nothing: the fewer parts win, and tall kernels, which need no workspace,
// where packed ones are no cheaper than so.
constexpr double parts_margin = 1.01, packed_margin = 1.1;
// Tiles that a part has at least where a sequence is shorter than its bound: below, there is more merging
// than computing. Waves that share rows need one each.
constexpr uint64_t usual_least_tiles = 4;
// Without a bound of rows: how many a sequence that is packed may have at most.
constexpr int64_t most_packed_rows = 1024;

Candidate best_parts(const package::PackedKernel *kernel, const Workload &work, uint64_t most_parts,
                     uint32_t compute_units) {
  Candidate best{kernel, 1, estimate(kernel->entry, work, 1, compute_units)};
  if (!kernel->entry.name.is_packed()) return best;
  const uint64_t tiles = tiles_seen(kernel->entry.name, work);
  // Each number of tiles in a part once, with the fewest parts that have so many.
  for (uint64_t parts = 2; parts <= std::min(tiles, most_parts);) {
    const uint64_t part_tiles = divide_up(tiles, parts);
    const Estimate found = estimate(kernel->entry, work, parts, compute_units);
    if (found.clk() * parts_margin < best.estimate.clk()) best = {kernel, parts, found};
    if (part_tiles == 1) break;
    parts = divide_up(tiles, part_tiles - 1);
  }
  return best;
}

std::string described(const Candidate &candidate) {
  std::string parts = candidate.parts > 1 ? text(" in ", candidate.parts, " parts") : std::string();
  return text(package::format_kernel_name(candidate.kernel->entry.name), parts, ", ",
              uint64_t(std::llround(candidate.estimate.clk())), " clk");
}

void use_packed(Choice &choice, const Candidate &candidate, const sluice_problem &problem, int64_t rows,
                const Workload &work) {
  choice.packed = candidate.kernel;
  use_parts(choice, problem, candidate.parts, rows);
  const package::KernelName &name = candidate.kernel->entry.name;
  const uint64_t part_tiles = divide_up(tiles_seen(name, work), candidate.parts);
  choice.min_part_tiles =
      uint32_t(std::min(part_tiles, std::max(usual_least_tiles, uint64_t{name.waves_dividing_keys()})));
}

/// Up to how many rows a sequence is the packed kernel's, with the parts that it has: doubled as long as it
/// is cheaper than the tall ones and the parts' workspace is below the ceiling.
int64_t last_packed_rows(const Candidate &packed, const Kernels &tall, const sluice_problem &problem,
                         int64_t few_rows, uint32_t compute_units) {
  const int64_t most = problem.max_q_len != 0 ? problem.max_q_len - 1 : most_packed_rows;
  int64_t rows = few_rows;
  while (rows * 2 <= most) {
    const Workload more{problem, problem.max_batch, rows * 2, problem.max_kv_len};
    const double clk = estimate(packed.kernel->entry, more, packed.parts, compute_units).clk();
    if (clk * packed_margin >= by_cost(tall, more, 1, compute_units).front().estimate.clk()) break;
    if (packed.parts > most_parts(problem, rows * 2)) break;
    rows *= 2;
  }
  return rows;
}

} // namespace

std::vector<Candidate> by_cost(const Kernels &kernels, const Workload &work, uint64_t most_parts,
                               uint32_t compute_units) {
  std::vector<Candidate> candidates;
  for (const package::PackedKernel *kernel : kernels)
    candidates.push_back(best_parts(kernel, work, most_parts, compute_units));
  std::stable_sort(candidates.begin(), candidates.end(), [](const Candidate &a, const Candidate &b) {
    return a.estimate.clk() < b.estimate.clk();
  });
  return candidates;
}

void choose_by_cost(Choice &choice, const Kernels &tall, const Kernels &packed, const sluice_problem &problem,
                    int64_t few_rows, bool can_merge, uint32_t compute_units) {
  // Without a bound of rows, prompts as long as all keys.
  const int64_t rows = problem.max_q_len != 0 ? problem.max_q_len : problem.max_kv_len;
  const auto parts_of = [&](int64_t count) { return can_merge ? most_parts(problem, count) : 1; };
  const Workload work{problem, problem.max_batch, rows, problem.max_kv_len};
  std::vector<Candidate> candidates = by_cost(packed, work, parts_of(rows), compute_units);
  const bool may_be_tall = !tall.empty() && (packed.empty() || problem.max_q_len == 0 || rows > few_rows);
  std::vector<Candidate> others;
  if (may_be_tall) others = by_cost(tall, work, 1, compute_units);
  const bool all_packed =
      !may_be_tall || (!packed.empty() && problem.max_q_len != 0 &&
                       candidates.front().estimate.clk() * packed_margin < others.front().estimate.clk());
  if (all_packed) {
    choice.packed_rows = INT32_MAX;
    use_packed(choice, candidates.front(), problem, rows, work);
  } else {
    choice.tall = others.front().kernel;
    if (!packed.empty()) {
      const Workload few{problem, problem.max_batch, few_rows, problem.max_kv_len};
      const Candidate best = by_cost(packed, few, parts_of(few_rows), compute_units).front();
      const int64_t last = last_packed_rows(best, tall, problem, few_rows, compute_units);
      choice.packed_rows = int32_t(last);
      use_packed(choice, best, problem, last, few);
    }
    candidates.swap(others); // first the ones chosen from
  }
  const Candidate &chosen = candidates.front();
  choice.estimate = chosen.estimate;
  choice.reason = text("about ", uint64_t(std::llround(chosen.estimate.clk())), " clk (",
                       uint64_t(std::llround(chosen.estimate.microseconds())), " us)");
  const Candidate *next = candidates.size() > 1 ? &candidates[1] : nullptr;
  if (!others.empty() && (next == nullptr || others.front().estimate.clk() < next->estimate.clk()))
    next = &others.front();
  if (next != nullptr) choice.reason += text("; next: ", described(*next));
}

} // namespace sluice::runtime
