//===- append_cases.h - the cases of each kind of append kernel -----------------------------------------===//
#pragma once

#include "conformance/cache_ops/append_case.h"
#include "conformance/cache_ops/kernel_types.h"

#include <vector>

namespace sluice::conformance {

/// Rows of K and V into a cache of single elements.
std::vector<AppendCase> append_cases_of(const KernelTypes &types);

/// Whole steps into a cache of blocks or groups.
std::vector<AppendCase> block_cases_of(const KernelTypes &types);

/// Whole steps: norms, rotations, Q.
std::vector<AppendCase> step_cases_of(const KernelTypes &types);

} // namespace sluice::conformance
