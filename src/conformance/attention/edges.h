//===- edges.h - a list of cases whose shapes rotate ----------------------------------------------------===//
#pragma once

#include "conformance/attention/collector.h"

#include <utility>

namespace sluice::conformance {

class Edges {
public:
  explicit Edges(const Collector &shapes) : shapes(shapes) {}

  void add(Case c) { add(std::move(c), shapes.shape(turn++)); }
  void add(Case c, Shapes::Shape shape) {
    c.dtype = shape.dtype;
    c.head_size = shape.head_size;
    c.v_in_k = shape.v_in_k;
    cases.push_back(std::move(c));
  }

  const Collector &shapes;
  std::vector<Case> cases;

private:
  int turn = 0;
};

} // namespace sluice::conformance
