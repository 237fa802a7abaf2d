//===- sample.cpp - a representative sample of cases ----------------------------------------------------===//

#include "conformance/attention/sample.h"

#include "conformance/attention/choices.h"

#include <set>
#include <utility>

namespace sluice::conformance {

std::vector<bool> sample_of(const std::vector<Case> &cases) {
  std::vector<bool> chosen(cases.size());
  std::set<std::pair<Choice, Mode>> met;
  /// Whether the case has a new combination.
  const auto meet = [&](const Case &c) {
    bool is_first = false;
    for (const Feature &feature : features())
      for (Choice choice : feature.choices)
        if (has(c, choice) && met.insert({choice, c.mode}).second) is_first = true;
    return is_first;
  };
  for (size_t i = 0; i < cases.size(); i += 3) {
    chosen[i] = true;
    meet(cases[i]);
  }
  for (size_t i = 0; i < cases.size(); ++i)
    if (!chosen[i] && meet(cases[i])) chosen[i] = true;
  return chosen;
}

} // namespace sluice::conformance
