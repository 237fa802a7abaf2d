//===- choices.h - everything a case can have, one by one -----------------------------------------------===//
#pragma once

#include "cases.h"

#include <vector>

namespace sluice::test {

/// Makes one choice in a case.
using Choice = void (*)(Case &);

/// What can be chosen independently, with the choices there are beside doing nothing.
struct Feature {
  const char *name;
  std::vector<Choice> choices;
};

const std::vector<Feature> &features();

/// Whether the choice has been made in a meaningful case, and still means something in it.
bool has(const Case &c, Choice choice);

} // namespace sluice::test
