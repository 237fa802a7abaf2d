//===- inputs.h - the logical tensors of a case: exact values -------------------------------------------===//
#pragma once

#include "conformance/attention/cases.h"
#include "conformance/attention/scores/by_change.h"

#include <array>
#include <cstddef>

namespace sluice::conformance {

/// [batch][query head][row][key]; a dimension that repeats has extent 1.
struct Matrix {
  std::array<int, 4> extent{};
  std::vector<double> values;

  double at(int b, int h, int i, int j) const {
    size_t index = 0;
    const std::array<int, 4> place = {b, h, i, j};
    for (size_t dim = 0; dim < 4; ++dim)
      index = index * size_t(extent[dim]) + size_t(extent[dim] == 1 ? 0 : place[dim]);
    return values[index];
  }
};

/// The numbers of a change of scores.
struct ScoreNumbers {
  Matrix matrix = {};
  std::vector<double> heads = {}; // [query head] or [batch][query head]
};

/// Every sequence has q_len rows and kv_len keys; elements past its own lengths have no effect.
struct Inputs {
  std::vector<double> q;                  // [batch][row][query head][element]
  std::vector<double> k, v;               // [batch][key][KV head][element]
  std::vector<double> q_scale, o_scale;   // [query head]; 1 if the case lacks them
  std::vector<double> k_scale, v_scale;   // [KV head], or [batch][key][KV head] if they are per key
  std::vector<double> prefix_k, prefix_v; // [prefix][key][KV head][element]
  // As k and prefix_k, if they are in blocks: the magnitudes of what kernels multiply with Q.
  std::vector<double> k_terms, prefix_k_terms;
  std::vector<double> prefix_k_scale, prefix_v_scale; // [prefix][key][KV head], only if they are per key
  ByChange<ScoreNumbers> changes;                     // of those that the case has
};

Inputs make_inputs(const Case &c);
/// A case whose sequences have the keys of this one's prefixes.
Case prefixes_as_sequences(const Case &c);

} // namespace sluice::conformance
