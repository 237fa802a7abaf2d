//===- comparison.cpp - the errors of a result ----------------------------------------------------------===//

#include "conformance/shared/comparison.h"

#include <cmath>
#include <limits>

namespace sluice::conformance {

void Comparison::note(const std::string &line) {
  if (++wrong <= shown_at_most) details += "    " + line + "\n";
}

double rounded_error_ratio(Element element, double got, double value, double margin) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  if (std::isnan(value)) return std::isnan(got) ? 0 : infinity;
  if (!std::isfinite(value)) return got == as_stored(element, value) ? 0 : infinity;
  if (got == value) return 0;
  // The distance to the nearest number or, near the middle between two, to the other.
  const double most =
      got > value ? as_stored(element, value + margin) - value : value - as_stored(element, value - margin);
  return std::isnan(got) || most <= 0 ? infinity : std::fabs(got - value) / most;
}

} // namespace sluice::conformance
