//===- candidates.h - which kernels can serve a problem -------------------------------------------------===//
//
// What kernels and their forms can do decides here; how fast they are does not.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "calls/problem.h"
#include "runtime/context.h"

#include <sluice/sluice.h>

#include <cstdint>
#include <vector>

namespace sluice::runtime {

using Kernels = std::vector<const package::PackedKernel *>;

struct Candidates {
  Kernels prefill, decode; // one of them may be empty
  /// A sequence of at most this many rows always goes to a decode kernel, if there is one: its rows and the
  /// heads of a group fill no more than a wave.
  int32_t few_rows = 0;
  const CacheOpKernel *merging = nullptr; // of results over splits; null: keys cannot be split
};

/// For a problem whose fields are legal. Throws support::Failure (unsupported) naming the field and the
/// nearest supported value.
Candidates find_candidates(const Context &context, const calls::Problem &problem);

/// Those that can also compute the prefixes of a cascade. Throws as find_candidates.
Kernels find_prefix_candidates(const Candidates &candidates, const calls::Problem &problem);

} // namespace sluice::runtime
