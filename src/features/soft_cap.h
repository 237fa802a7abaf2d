//===- soft_cap.h - S becomes c * tanh(S / c) -----------------------------------------------------------===//
#pragma once

#include "calls/args.h"
#include "calls/problem.h"
#include "features/feature.h"

#include <cmath>
#include <numbers>

namespace sluice::features {

inline constexpr Need soft_cap_needs[] = {SLUICE_FIELD_NEED(names::soft_cap, soft_cap, p.soft_cap != 0, "0")};
inline constexpr Question soft_cap_questions[] = {
    {"soft cap", "`soft_cap`", names::soft_cap, [](calls::Problem &p) { p.soft_cap = 30; }, "*_cap[0-9]*"}};

inline void check_soft_cap(const calls::Problem &problem) {
  if (std::isfinite(problem.soft_cap) && problem.soft_cap >= 0) return;
  tensors::invalid("soft_cap",
                   support::text("soft_cap is ", problem.soft_cap, "; it must be finite and at least 0"));
}

/// Kernels multiply by 2 / soft_cap, which must be finite, and compute tanh with an error below 2^-20, which
/// moves a score by less than 2^-4.
inline void check_soft_cap_limits(const calls::Problem &problem) {
  constexpr float least = 1e-30f, most = 65536;
  const float cap = problem.soft_cap;
  if (cap == 0 || (cap >= least && cap <= most)) return;
  tensors::unsupported(
      "soft_cap", support::text("soft_cap is ", cap, "; nearest supported: ", cap < least ? least : most));
}

inline void fill_soft_cap(package::AttentionKernargs &out, const calls::Problem &problem) {
  if (problem.soft_cap == 0) return;
  out.cap_log2e = float(double{problem.soft_cap} * std::numbers::log2e);
  out.two_per_cap = float(2 / double{problem.soft_cap});
}

inline double capped_score(const calls::Problem &problem, const calls::Args &, const Place &, double score) {
  return problem.soft_cap == 0 ? score : problem.soft_cap * std::tanh(score / problem.soft_cap);
}

inline constexpr Feature soft_cap = {
    .needs = soft_cap_needs,
    .questions = soft_cap_questions,
    .check_problem = check_soft_cap,
    .check_limits = check_soft_cap_limits,
    .changes_scores = [](const calls::Problem &problem) { return problem.soft_cap != 0; },
    .fill_problem = fill_soft_cap,
    .changed_score = capped_score,
};

} // namespace sluice::features
