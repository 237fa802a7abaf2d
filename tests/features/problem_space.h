//===- problem_space.h - everything that a problem can ask for, a value at a time -----------------------===//
//
// A dimension is a field of calls::Problem, or fields that go together, with values that are usual, at the
// ends of what is legal, and illegal. The first value of each changes nothing, so a problem of first values
// is the plain one. This file does not know what is supported: the library is asked.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "cache_ops/device.h"
#include "calls/problem.h"

#include <string>
#include <utility>
#include <vector>

namespace sluice::test {

struct ProblemValue {
  std::string name;
  void (*set)(calls::Problem &, int32_t argument);
  int32_t argument = 0;
};

struct ProblemDimension {
  std::string name;
  std::vector<ProblemValue> values;
};

/// In the order in which they are set: later ones may look at fields of earlier ones.
const std::vector<ProblemDimension> &problem_space();

/// A value of each dimension, by its place.
class Point {
public:
  Point() : places(problem_space().size()) {}
  static Point random(Numbers &numbers);

  Point with(size_t dimension, size_t place) const;
  calls::Problem problem() const;
  /// The values that are not the first ones.
  std::string text() const;

private:
  std::vector<size_t> places;
};

} // namespace sluice::test
