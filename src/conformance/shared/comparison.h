//===- comparison.h - the errors of a result ------------------------------------------------------------===//
#pragma once

#include "conformance/shared/elements.h"

#include <cstddef>
#include <string>

namespace sluice::conformance {

struct Comparison {
  /// Lines of `details`.
  static constexpr size_t shown_at_most = 6;

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

} // namespace sluice::conformance
