//===- compare.h - results against expectations ---------------------------------------------------------===//
#pragma once

#include "elements.h"
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

  /// Something is wrong.
  void note(const std::string &line);
};

/// The error of what F32 arithmetic has left within `margin` of `value` and one rounding has made of it, in
/// the most that this allows: above 1 it is another number.
double rounded_error_ratio(Element element, double got, double value, double margin);

Comparison compare(const Case &c, const Expected &expected, const Outputs &outputs, Judge judge);

} // namespace sluice::test
