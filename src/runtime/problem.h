//===- problem.h - what follows from a problem ----------------------------------------------------------===//
#pragma once

#include "calls/problem.h"

#include <sluice/sluice.h>

#include <cstdint>

namespace sluice::runtime {

/// The query heads that share a KV head.
constexpr int32_t group_heads(const calls::Problem &problem) {
  return problem.q_heads / problem.kv_heads;
}

/// Whether bits must not depend on the batch. Keys are then split at fixed places.
constexpr bool is_batch_invariant(const calls::Problem &problem) {
  return (problem.flags & calls::batch_invariant) != 0;
}

/// Whether rows see prefixes before their sequence's own keys: then each level of keys has launches of its
/// own, and their results are merged.
constexpr bool is_cascade(const calls::Problem &problem) {
  return (problem.flags & calls::prefixes) != 0;
}

/// The problem of a cascade's prefixes: all rows are after their prefix, and see it completely.
constexpr calls::Problem prefix_problem(calls::Problem problem) {
  problem.flags &= ~uint32_t{calls::causal | calls::causal_by_sequence};
  if (problem.mask_alignment == SLUICE_GIVEN_DIAGONAL) problem.mask_alignment = SLUICE_BOTTOM_RIGHT;
  return problem;
}

} // namespace sluice::runtime
