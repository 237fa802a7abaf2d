//===- problem.h - what follows from a problem ----------------------------------------------------------===//
#pragma once

#include <sluice/sluice.h>

#include <cstdint>

namespace sluice::runtime {

/// The query heads that share a KV head.
constexpr int32_t group_heads(const sluice_problem &problem) {
  return problem.q_heads / problem.kv_heads;
}

/// Whether bits must not depend on the batch. Keys are then split at fixed places.
constexpr bool is_batch_invariant(const sluice_problem &problem) {
  return problem.determinism == SLUICE_DETERMINISM_BATCH_INVARIANT;
}

/// Whether rows see prefixes before their sequence's own keys: then each level of keys has launches of its
/// own, and their results are merged.
constexpr bool is_cascade(const sluice_problem &problem) {
  return (problem.flags & SLUICE_SHARED_PREFIX) != 0;
}

/// The problem of a cascade's prefixes: all rows are after their prefix, and see it completely.
constexpr sluice_problem prefix_problem(sluice_problem problem) {
  problem.flags &= ~uint32_t{SLUICE_CAUSAL | SLUICE_CAUSAL_BY_SEQUENCE};
  if (problem.mask_alignment == SLUICE_GIVEN_DIAGONAL) problem.mask_alignment = SLUICE_BOTTOM_RIGHT;
  return problem;
}

} // namespace sluice::runtime
