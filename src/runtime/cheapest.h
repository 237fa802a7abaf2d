//===- cheapest.h - the kernels and splits with the lowest estimated cost -------------------------------===//
#pragma once

#include "runtime/choice.h"
#include "runtime/cost.h"

#include <cstdint>
#include <string>
#include <vector>

namespace sluice::runtime {

using Kernels = std::vector<const package::PackedKernel *>;

/// A kernel with its best number of splits.
struct Candidate {
  const package::PackedKernel *kernel = nullptr;
  uint64_t splits = 1;
  Estimate estimate;
};

/// Every kernel with its best number of splits, which is at most `most_splits`: cheapest first.
std::vector<Candidate> by_cost(const Kernels &kernels, const Workload &work, uint64_t most_splits,
                               uint32_t compute_units);

/// Chooses by estimates for a problem with bounds of the batch and of keys, and of rows unless there are
/// prefill kernels. `few_rows`: a decode kernel beside others always gets sequences of at most this many
/// rows.
void choose_by_cost(Choice &choice, const Kernels &prefill, const Kernels &decode,
                    const sluice_problem &problem, int64_t few_rows, bool can_merge, uint32_t compute_units);

/// Chooses the kernel and splits for a cascade's prefixes, whose own keys have theirs, and returns their
/// estimated time as text.
std::string choose_prefix_by_cost(Choice &choice, const Kernels &kernels, const sluice_problem &problem,
                                  uint32_t compute_units);

} // namespace sluice::runtime
