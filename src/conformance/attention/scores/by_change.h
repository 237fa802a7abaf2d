//===- by_change.h - a value for each change of scores --------------------------------------------------===//
#pragma once

#include <map>

namespace sluice::conformance {

struct ScoreChange;

/// A value that has not been set is empty, or 0.
template <typename Value> class ByChange {
public:
  Value &operator[](const ScoreChange &change) { return values[&change]; }
  const Value &operator[](const ScoreChange &change) const {
    static const Value none{};
    const auto found = values.find(&change);
    return found == values.end() ? none : found->second;
  }

private:
  std::map<const ScoreChange *, Value> values;
};

} // namespace sluice::conformance
