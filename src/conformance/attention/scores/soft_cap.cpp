//===- soft_cap.cpp - a soft cap of scores --------------------------------------------------------------===//

#include "conformance/attention/name_parts.h"
#include "conformance/attention/scores/scores.h"

#include <cmath>
#include <limits>

namespace sluice::conformance {

namespace {

bool is_in(const Case &c) {
  return c.soft_cap != 0;
}

std::string name(const Case &c) {
  return format("_cap%g", c.soft_cap);
}

template <int tenths> void cap(Case &c) {
  c.soft_cap = tenths / 10.0;
}
std::vector<Feature> choices() {
  return {{"soft cap", {cap<15>, cap<300>}}};
}

std::vector<KernelFeature> on_kernels() {
  return {{"soft cap", "soft_cap", [](Case &c, const Kernel &) { c.soft_cap = 1.5; }}};
}

void join_everything(Case &c, bool is_causal) {
  if (!is_causal) c.soft_cap = 30;
}

/// tanh at its limits, and where it is nearly its argument.
void add_edges(Edges &edges) {
  for (double limit : {0.5, 2.0, 50.0, 1000.0})
    for (Pattern pattern : {Pattern::normal, Pattern::peaked})
      edges.add({.q_len = 20, .kv_len = 100, .pattern = pattern, .soft_cap = limit});
}

std::vector<BadProblem> bad_problems() {
  return {{[](sluice_problem &problem) { problem.soft_cap = -1; }, "soft_cap"},
          {[](sluice_problem &problem) { problem.soft_cap = std::numeric_limits<float>::infinity(); },
           "soft_cap"}};
}

void ask(const Case &c, sluice_problem &problem) {
  problem.soft_cap = float(c.soft_cap);
}

double map(const ScorePlace &place, const ScoreNumbers &, double score) {
  const auto limit = double(float(place.c.soft_cap));
  return limit * std::tanh(score / limit);
}

double error(const Case &c, const RowMagnitudes &row, double) {
  return 2 * row.raw + 12 * c.soft_cap;
}

} // namespace

const ScoreChange scores::soft_cap = {
    .is_in = is_in,
    .name = name,
    .choices = choices,
    .on_kernels = on_kernels,
    .join_everything = join_everything,
    .add_edges = add_edges,
    .bad_problems = bad_problems,
    .ask = ask,
    .map = map,
    .error = error,
};

} // namespace sluice::conformance
