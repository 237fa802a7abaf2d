//===- choices.h - every property of a case, one by one -------------------------------------------------===//
#pragma once

#include "conformance/attention/cases.h"

#include <vector>

namespace sluice::conformance {

/// Makes one choice in a case.
using Choice = void (*)(Case &);

/// An independent property, with its choices other than the default.
struct Feature {
  const char *name;
  std::vector<Choice> choices;
};

const std::vector<Feature> &features();

/// Whether the choice has been made in a meaningful case and still has an effect in it.
bool has(const Case &c, Choice choice);

} // namespace sluice::conformance
