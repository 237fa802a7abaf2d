//===- compare.h - results against expectations ---------------------------------------------------------===//
#pragma once

#include "memory.h"

namespace sluice::test {

/// Whose rounding errors are allowed.
enum class Judge : uint8_t {
  kernel,    // every operation in the types of a kernel: the tolerances of compute_expected
  reference, // one rounding, of the result
};

struct Comparison {
  /// The largest error as a part of its tolerance; at most 1 passes.
  double o_ratio = 0;
  double lse_ratio = 0;
  size_t wrong = 0;
  /// The first few wrong elements, a line each.
  std::string details;
};

Comparison compare(const Case &c, const Expected &expected, const Outputs &outputs, Judge judge);

} // namespace sluice::test
