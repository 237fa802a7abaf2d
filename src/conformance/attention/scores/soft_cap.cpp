//===- soft_cap.cpp - a soft cap of scores --------------------------------------------------------------===//

#include "conformance/attention/name_parts.h"
#include "conformance/attention/scores/scores.h"

#include <cmath>
#include <limits>
#include <numbers>

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
  return {{[](ProblemStructs &problem) { problem.scores.soft_cap = -1; }, "scores.soft_cap"},
          {[](ProblemStructs &problem) { problem.scores.soft_cap = std::numeric_limits<float>::infinity(); },
           "scores.soft_cap"}};
}

std::vector<Mutant> defects() {
  return {
      {"no soft cap", "soft_cap", is_in, [](Case &c, Inputs &, const Kernel &) { c.soft_cap = 0; }},
      {"another soft cap", "soft_cap", is_in, [](Case &c, Inputs &, const Kernel &) { c.soft_cap *= 1.01; }}};
}

void ask(const Case &c, ProblemStructs &problem) {
  problem.scores.soft_cap = float(c.soft_cap);
}

double map(const ScorePlace &place, const ScoreNumbers &, double score) {
  const auto limit = double(float(place.c.soft_cap));
  return limit * std::tanh(score / limit);
}

double error(const Case &c, const RowMagnitudes &row, double) {
  return 2 * row.raw + 12 * c.soft_cap;
}

float in_f32(const ScorePlace &place, const ScoreNumbers &, float score) {
  const auto limit = float(place.c.soft_cap);
  const float tanh = 1 - 2 * (1 / (1 + std::exp2(score * (2 / limit))));
  return tanh * (limit * std::numbers::log2e_v<float>);
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
    .defects = defects,
    .ask = ask,
    .map = map,
    .error = error,
    .in_f32 = in_f32,
};

} // namespace sluice::conformance
