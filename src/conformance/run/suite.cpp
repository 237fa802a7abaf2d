//===- suite.cpp - all cases of the suite ---------------------------------------------------------------===//

#include "conformance/run/suite.h"

#include "conformance/attention/sample.h"

#include <algorithm>
#include <iterator>

namespace sluice::conformance {

namespace {

// In addition to the kernels' shapes, for sluice_attention_reference, which computes any.
const Shapes other_shapes = {{{Dtype::f16, {192, 128}}, {Dtype::bf16, {576, 512}}, {Dtype::f16, {80, 48}}}};

template <typename KindCase> void append_to(std::vector<AnyCase> &all, std::vector<KindCase> more) {
  all.insert(all.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

/// All cases, or those inside or outside of the sample.
std::vector<Case> features_of(const Shapes &shapes, const std::string &part, bool host_only) {
  std::vector<Case> features = feature_cases(shapes);
  if (host_only) {
    Shapes others = other_shapes;
    std::erase_if(others.all, [&](const auto &shape) {
      return std::ranges::any_of(shapes.all, [&](const auto &other) {
        return other.dtype == shape.dtype && other.head_size == shape.head_size;
      });
    });
    if (!others.all.empty())
      for (Case &c : single_feature_cases(others))
        features.push_back(std::move(c));
  }
  const std::vector<bool> in_sample = sample_of(features);
  std::vector<Case> chosen;
  for (size_t i = 0; i < features.size(); ++i)
    if (part != (in_sample[i] ? "rest" : "sample")) chosen.push_back(std::move(features[i]));
  return chosen;
}

} // namespace

const std::vector<std::string> parts = {"dense", "features", "sample", "rest", "kernels", "cache"};

const std::string &name_of(const AnyCase &c) {
  return std::visit([](const auto &one) -> const std::string & { return one.name; }, c);
}

void set_seed(AnyCase &c, uint64_t seed) {
  std::visit([&](auto &one) { one.seed = seed; }, c);
}

std::vector<AnyCase> suite(const Target &target, const std::string &part, Level level, bool host_only) {
  const Shapes tested = shapes(target);
  const bool whole = part.empty();
  std::vector<AnyCase> all;
  if (whole || part == "dense") append_to(all, dense_cases(tested));
  if (whole || part == "features" || part == "sample" || part == "rest")
    append_to(all, features_of(tested, part, host_only));
  if (!host_only && (whole || part == "kernels")) append_to(all, kernel_cases(target, level));
  if (whole || part == "cache") {
    append_to(all, append_cases(target, level));
    if (!host_only) {
      append_to(all, page_copy_cases(target));
      append_to(all, merge_cases(target, level));
    }
  }
  return all;
}

} // namespace sluice::conformance
