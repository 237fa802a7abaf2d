//===- cheapest.h - the kernels and parts that are estimated to cost least ------------------------------===//
#pragma once

#include "runtime/choice.h"
#include "runtime/cost.h"

#include <cstdint>
#include <vector>

namespace sluice::runtime {

using Kernels = std::vector<const package::PackedKernel *>;

/// A kernel with the number of parts that suits it best.
struct Candidate {
  const package::PackedKernel *kernel = nullptr;
  uint64_t parts = 1;
  Estimate estimate;
};

/// Every kernel with its best number of parts, which is at most `most_parts`: cheapest first.
std::vector<Candidate> by_cost(const Kernels &kernels, const Workload &work, uint64_t most_parts,
                               uint32_t compute_units);

/// Chooses by estimates for a problem with bounds of the batch and of keys, and of rows unless there are tall
/// kernels. `few_rows`: sequences of no more are always packed, where a plan has a packed kernel beside
/// others.
void choose_by_cost(Choice &choice, const Kernels &tall, const Kernels &packed, const sluice_problem &problem,
                    int64_t few_rows, bool can_merge, uint32_t compute_units);

} // namespace sluice::runtime
