//===- collector.cpp - cases without repetition, of existing shapes -------------------------------------===//

#include "conformance/attention/collector.h"

#include <algorithm>
#include <functional>

namespace sluice::conformance {

void Collector::add(Case c) {
  // No kernel has this shape: use one of the same type, else any.
  const auto same_type = [&](const Shapes::Shape &shape) { return shape.dtype == c.dtype; };
  const HeadSizes rows(int(row_elements(c.head_size.qk)), int(row_elements(c.head_size.v)));
  const auto same = [&](const Shapes::Shape &shape) { return same_type(shape) && shape.head_size == rows; };
  auto shape = std::find_if(shapes.begin(), shapes.end(), same);
  if (shape == shapes.end()) shape = std::find_if(shapes.begin(), shapes.end(), same_type);
  if (shape == shapes.end()) shape = shapes.begin();
  c.dtype = shape->dtype;
  if (shape->head_size != rows) c.head_size = shape->head_size;
  c = meaningful(std::move(c));
  // The bounds of a plan choose between kernels: every third case meets the plan for any size.
  c.bounded = cases.size() % 3 != 2;
  c.name = make_name(c);
  if (names.insert(c.name).second) cases.push_back(std::move(c));
}

std::vector<Dtype> Shapes::dtypes() const {
  std::set<Dtype> found;
  for (const Shape &shape : all)
    found.insert(shape.dtype);
  return {found.begin(), found.end()};
}

std::vector<HeadSizes> Shapes::head_sizes() const {
  std::set<HeadSizes, std::greater<>> found;
  for (const Shape &shape : all)
    found.insert(shape.head_size);
  return {found.begin(), found.end()};
}

} // namespace sluice::conformance
