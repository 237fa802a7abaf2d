//===- by_rule.cpp - the kernels that rules choose ------------------------------------------------------===//
#include "runtime/by_rule.h"

#include "calls/problem.h"
#include "runtime/problem.h"
#include "support/checked.h"
#include "support/failure.h"

#include <algorithm>
#include <utility>

namespace sluice::runtime {
namespace {

using support::divide_up;
using support::text;

/// A kernel, and why.
struct Chosen {
  const package::PackedKernel *kernel;
  std::string reason;
};

/// Workgroups of a launch at the problem's bounds; 0 if a bound is missing.
uint64_t workgroups(const calls::Problem &problem, uint32_t tile_q) {
  const uint64_t rows = uint64_t(problem.max_q_len) * uint64_t(group_heads(problem));
  const uint64_t sequence_workgroups = uint64_t(problem.kv_heads) * divide_up(rows, uint64_t{tile_q});
  return support::checked_multiply(uint64_t(problem.max_batch), sequence_workgroups).value_or(UINT64_MAX);
}

Chosen choose_prefill(Kernels kernels, const calls::Problem &problem, uint32_t compute_units) {
  // Highest tile first; equal heights by name.
  std::stable_sort(kernels.begin(), kernels.end(),
                   [](const auto *a, const auto *b) { return a->entry.name.tile_q > b->entry.name.tile_q; });
  const bool batch_counts = !is_batch_invariant(problem);
  Chosen chosen = {kernels.front(), text("the highest of ", kernels.size(),
                                         " query tiles; the bounds do not require a lower one")};
  for (const package::PackedKernel *kernel : kernels) {
    const uint32_t tile_q = kernel->entry.name.tile_q;
    const uint32_t higher_tile_q = chosen.kernel->entry.name.tile_q;
    if (tile_q == higher_tile_q) continue;
    // Tiles of other key counts round differently: bits would depend on the bounds.
    if (!batch_counts && kernel->entry.name.tile_kv != chosen.kernel->entry.name.tile_kv) continue;
    const uint64_t groups = workgroups(problem, higher_tile_q);
    if (problem.max_q_len != 0 && int64_t{problem.max_q_len} * group_heads(problem) <= tile_q) {
      chosen = {kernel, text("bounds.q_len ", problem.max_q_len, " fits a query tile of ", tile_q)};
    } else if (batch_counts && groups < compute_units && workgroups(problem, tile_q) > groups) {
      chosen = {kernel, text("query tiles of ", higher_tile_q, " would make ", groups, " workgroups for ",
                             compute_units, " compute units; tiles of ", tile_q, " make ",
                             workgroups(problem, tile_q))};
    }
  }
  return chosen;
}

/// The lowest decode tile that holds `rows` rows of every head of a group, or the highest one.
Chosen choose_decode(Kernels kernels, const calls::Problem &problem, int64_t rows) {
  std::stable_sort(kernels.begin(), kernels.end(),
                   [](const auto *a, const auto *b) { return a->entry.name.tile_q < b->entry.name.tile_q; });
  const int32_t group = group_heads(problem);
  const auto fits = [&](const auto *kernel) { return kernel->entry.name.tile_q >= rows * group; };
  const auto found = std::find_if(kernels.begin(), kernels.end(), fits);
  const package::PackedKernel *const kernel = found != kernels.end() ? *found : kernels.back();
  return {kernel, text("query tiles of ", kernel->entry.name.tile_q, " hold the ", group,
                       group == 1 ? " query head" : " query heads", " of a group")};
}

} // namespace

OwnChoice choose_by_rule(const Candidates &candidates, const calls::Problem &problem,
                         uint32_t compute_units) {
  const bool fixed = is_batch_invariant(problem);
  OwnChoice out;
  if (!candidates.decode.empty()) {
    out.few_rows = candidates.prefill.empty() ? INT32_MAX : candidates.few_rows;
    const int32_t rows =
        fixed || problem.max_q_len == 0 ? out.few_rows : std::min(out.few_rows, problem.max_q_len);
    Chosen decode = choose_decode(candidates.decode, problem, rows);
    out.few = decode.kernel;
    out.reason = std::move(decode.reason);
    if (fixed && candidates.merging != nullptr)
      out.splits = fixed_splits(problem, out.few->entry.name, out.few_rows);
  }
  // Without decode kernels few_rows is 0.
  if (!candidates.prefill.empty() && (problem.max_q_len == 0 || problem.max_q_len > out.few_rows)) {
    Chosen prefill = choose_prefill(candidates.prefill, problem, compute_units);
    out.many = prefill.kernel;
    out.reason = std::move(prefill.reason);
  }
  return out;
}

PrefixChoice choose_prefix_by_rule(const Kernels &kernels, const calls::Problem &problem,
                                   uint32_t own_splits) {
  // The rows of a prefix are those of other sequences too, so their number must not matter.
  const package::PackedKernel *const highest = *std::ranges::max_element(kernels, {}, [](const auto *kernel) {
    return std::pair(kernel->entry.name.is_prefill(), kernel->entry.name.tile_q);
  });
  return {.kernel = highest,
          .splits = fixed_prefix_splits(problem, highest->entry.name),
          .first_split = first_fixed_prefix_split(own_splits),
          .estimate = {}};
}

} // namespace sluice::runtime
