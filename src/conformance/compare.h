//===- compare.h - results against expectations ---------------------------------------------------------===//
#pragma once

#include "elements.h"
#include "memory.h"

namespace sluice::conformance {

/// Whose rounding errors are allowed.
enum class Judge : uint8_t {
  kernel,    // rounding of every operation in a kernel's types: the tolerances of compute_expected
  reference, // one rounding, of the result
};

struct Comparison {
  /// The largest error relative to its tolerance; at most 1 passes.
  double o_ratio = 0;
  double lse_ratio = 0;
  size_t wrong = 0;
  /// The first few wrong elements, a line each.
  std::string details;

  /// Records an error.
  void note(const std::string &line);
};

/// The error of a number that F32 arithmetic computed to within `margin` of `value` and that was rounded
/// once, relative to the largest error this allows: above 1 it is wrong.
double rounded_error_ratio(Element element, double got, double value, double margin);

Comparison compare(const Case &c, const Expected &expected, const Outputs &outputs, Judge judge);

} // namespace sluice::conformance
