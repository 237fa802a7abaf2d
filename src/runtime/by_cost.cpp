//===- by_cost.cpp - the kernels and splits with the lowest estimated cost ------------------------------===//
#include "runtime/by_cost.h"

#include "calls/problem.h"
#include "runtime/problem.h"
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

/// A kernel with its best number of splits.
struct Offer {
  const package::PackedKernel *kernel = nullptr;
  uint64_t splits = 1;
  Estimate estimate;
};
using Offers = std::vector<Offer>; // cheapest first

Offer best_splits(const package::PackedKernel *kernel, const Workload &work, uint64_t most_splits,
                  uint32_t compute_units) {
  Offer best{kernel, 1, estimate(kernel->entry, work, 1, compute_units)};
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

void sort(Offers &offers) {
  std::ranges::stable_sort(offers, {}, [](const Offer &offer) { return offer.estimate.clk(); });
}

/// Every kernel with its best number of splits, which is at most `most_splits`.
Offers offers_of(const Kernels &kernels, const Workload &work, uint64_t most_splits, uint32_t compute_units) {
  Offers offers;
  for (const package::PackedKernel *kernel : kernels)
    offers.push_back(best_splits(kernel, work, most_splits, compute_units));
  sort(offers);
  return offers;
}

Splits splits_of(const Offer &offer, const Workload &work) {
  const package::KernelName &name = offer.kernel->entry.name;
  const uint64_t split_tiles = divide_up(tiles_seen(name, work), offer.splits);
  const uint64_t least = std::max(usual_least_tiles, uint64_t{name.waves_dividing_keys()});
  return {.count = uint32_t(offer.splits), .least_tiles = uint32_t(std::min(split_tiles, least))};
}

std::string rounded_clk(const Offer &offer) {
  return text(uint64_t(std::llround(offer.estimate.clk())), " clk");
}

/// The estimate, and the next best kernel.
std::string reason_of(const Offer &chosen, const Offers &offers) {
  std::string out = text("about ", rounded_clk(chosen), " (",
                         uint64_t(std::llround(chosen.estimate.microseconds())), " us)");
  const auto next =
      std::ranges::find_if(offers, [&](const Offer &other) { return other.kernel != chosen.kernel; });
  if (next == offers.end()) return out;
  const std::string splits = next->splits > 1 ? text(" in ", next->splits, " splits") : std::string();
  return out + text("; next: ", package::format_kernel_name(next->kernel->entry.name), splits, ", ",
                    rounded_clk(*next));
}

/// A choice by cost: the kernels of a problem, and the calls for which they are chosen.
struct Search {
  const Candidates &candidates;
  const calls::Problem &problem;
  uint32_t compute_units;

  Workload with_rows(int64_t rows) const { return {problem, problem.max_batch, rows, problem.max_kv_len}; }

  uint64_t allowed_splits(int64_t rows) const {
    return candidates.merging != nullptr ? most_splits(problem, rows) : 1;
  }

  Offers prefill(const Workload &work, uint64_t most_splits) const {
    return offers_of(candidates.prefill, work, most_splits, compute_units);
  }
  Offers decode(const Workload &work) const {
    return offers_of(candidates.decode, work, allowed_splits(work.rows), compute_units);
  }
};

/// The most rows of a sequence that the decode kernel gets, with its splits: doubled while it is cheaper than
/// the prefill kernels and the splits' workspace is below the ceiling.
int64_t last_few_rows(const Search &search, const Offer &decode) {
  const calls::Problem &problem = search.problem;
  const int64_t most = problem.max_q_len != 0 ? problem.max_q_len : most_few_rows;
  int64_t rows = search.candidates.few_rows;
  while (rows * 2 <= most) {
    const Workload more = search.with_rows(rows * 2);
    const double clk = estimate(decode.kernel->entry, more, decode.splits, search.compute_units).clk();
    if (clk * kernel_margin >= search.prefill(more, 1).front().estimate.clk()) break;
    if (decode.splits > most_splits(problem, rows * 2)) break;
    rows *= 2;
  }
  return rows;
}

/// Every kernel for all sequences, those of few rows included.
Offers offers_for_all(const Search &search, const Workload &work, bool may_be_prefill) {
  Offers offers = search.decode(work);
  if (!may_be_prefill) return offers;
  // A plan with splits has a single kernel, so a prefill kernel would also get sequences of few rows: for
  // several sequences allow that only if they have long chunks.
  const bool has_splits = work.batch == 1 || work.rows * group_heads(work.problem) >= least_chunk_rows;
  const Offers prefill = search.prefill(work, has_splits ? search.allowed_splits(work.rows) : 1);
  offers.insert(offers.end(), prefill.begin(), prefill.end());
  sort(offers);
  return offers;
}

/// The kernel for all sequences, if there is one: the best offer, unless a prefill kernel without splits,
/// which takes `prefill_clk`, costs about as little.
std::optional<Offer> one_for_all(const Offers &offers, double prefill_clk, const Workload &work) {
  const double most = offers.front().estimate.clk() * kernel_margin;
  const int64_t rows = work.rows * group_heads(work.problem);
  const auto holding = std::ranges::find_if(offers, [&](const Offer &offer) {
    const package::KernelName &name = offer.kernel->entry.name;
    return !name.is_prefill() && name.tile_q >= rows && offer.estimate.clk() < most;
  });
  if (holding != offers.end()) return *holding;
  return most < prefill_clk ? std::optional(offers.front()) : std::nullopt;
}

OwnChoice give_all(const Offer &offer, const Workload &work, const Offers &offers) {
  return {.few = offer.kernel,
          .few_rows = INT32_MAX,
          .splits = splits_of(offer, work),
          .estimate = offer.estimate,
          .reason = reason_of(offer, offers)};
}

/// The prefill kernel takes long sequences. The decode kernel for short ones is the best for the fewest rows.
OwnChoice divide_by_rows(const Search &search, const Offer &prefill, const Offers &offers) {
  OwnChoice out;
  out.many = prefill.kernel;
  out.estimate = prefill.estimate;
  out.reason = reason_of(prefill, offers);
  if (search.candidates.decode.empty()) return out;
  const Workload fewest = search.with_rows(search.candidates.few_rows);
  const Offer decode = search.decode(fewest).front();
  out.few = decode.kernel;
  out.few_rows = int32_t(last_few_rows(search, decode));
  out.splits = splits_of(decode, fewest);
  return out;
}

} // namespace

OwnChoice choose_by_cost(const Candidates &candidates, const calls::Problem &problem,
                         uint32_t compute_units) {
  const Search search = {candidates, problem, compute_units};
  // Without a bound of rows, assume prompts as long as all keys.
  const bool has_bound = problem.max_q_len != 0;
  const Workload work = search.with_rows(has_bound ? problem.max_q_len : problem.max_kv_len);
  const bool may_be_prefill = candidates.decode.empty() || !has_bound || work.rows > candidates.few_rows;
  const Offers offers = offers_for_all(search, work, may_be_prefill);
  const Offers prefill = may_be_prefill ? search.prefill(work, 1) : Offers();
  if (has_bound) {
    const double prefill_clk =
        prefill.empty() ? std::numeric_limits<double>::infinity() : prefill.front().estimate.clk();
    const std::optional<Offer> all = one_for_all(offers, prefill_clk, work);
    if (all) return give_all(*all, work, offers);
  }
  // Without a bound of rows splits have no workspace, and there are prefill kernels.
  return divide_by_rows(search, prefill.front(), offers);
}

PrefixChoice choose_prefix_by_cost(const Kernels &kernels, const calls::Problem &problem, uint32_t own_splits,
                                   uint32_t compute_units) {
  calls::Problem part_problem = prefix_problem(problem);
  part_problem.o_type = SLUICE_F32;
  const Workload work{part_problem, problem.max_prefixes,
                      divide_up(problem.max_q_tokens, int64_t{problem.max_prefixes}), problem.max_prefix_len};
  const uint64_t most = most_prefix_splits(problem, own_splits);
  const Offer best = offers_of(kernels, work, most, compute_units).front();
  return {.kernel = best.kernel,
          .splits = splits_of(best, work),
          .first_split = own_splits,
          .estimate = best.estimate};
}

} // namespace sluice::runtime
