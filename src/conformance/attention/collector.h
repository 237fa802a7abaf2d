//===- collector.h - cases without repetition, of existing shapes ---------------------------------------===//
#pragma once

#include "conformance/attention/cases.h"

#include <set>

namespace sluice::conformance {

class Collector {
public:
  explicit Collector(const Shapes &tested)
      : shapes(tested.all), dtypes(tested.dtypes()), head_sizes(tested.head_sizes()) {}

  /// The n-th type, head size or shape, in rotation.
  Dtype dtype(int n) const { return dtypes[size_t(n) % dtypes.size()]; }
  HeadSizes head_size(int n) const { return head_sizes[size_t(n) % head_sizes.size()]; }
  Shapes::Shape shape(int n) const { return shapes[size_t(n) % shapes.size()]; }

  /// Adds the nearest meaningful case, unless it has already been added.
  void add(Case c);

  const std::vector<Shapes::Shape> shapes;
  const std::vector<Dtype> dtypes;
  const std::vector<HeadSizes> head_sizes;
  std::vector<Case> cases;

private:
  std::set<std::string> names;
};

} // namespace sluice::conformance
