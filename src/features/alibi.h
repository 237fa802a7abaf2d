//===- alibi.h - a slope for each head, times the distance of a key (ALiBi) -----------------------------===//
#pragma once

#include "features/feature.h"

#include <cmath>

namespace sluice::features {

inline constexpr Need alibi_needs[] = {SLUICE_FLAG_NEED(names::alibi, SLUICE_ALIBI)};
inline constexpr CallNeed alibi_by_sequence_needs[] = {
    {names::alibi_by_sequence, "alibi_batch_stride", "0",
     [](const sluice_problem &, const sluice_args &a) { return a.alibi_batch_stride != 0 && a.batch > 1; }}};
inline constexpr Question alibi_questions[] = {{"ALiBi", "`SLUICE_ALIBI`", names::alibi,
                                                [](sluice_problem &p) { p.flags |= SLUICE_ALIBI; },
                                                "*_alibi*"}};
inline constexpr Question alibi_by_sequence_questions[] = {{"ALiBi slopes per sequence",
                                                            "`alibi_batch_stride`", names::alibi_by_sequence,
                                                            nullptr, "*_alibi_each*"}};

inline double score_with_alibi(const sluice_problem &problem, const sluice_args &args, const Place &at,
                               double score) {
  if (!(problem.flags & SLUICE_ALIBI)) return score;
  const double slope = args.alibi_slopes[at.sequence * args.alibi_batch_stride + at.q_head];
  return score - slope * std::fabs(double(at.distance()));
}

inline constexpr Feature alibi = {
    .flags = SLUICE_ALIBI,
    .needs = alibi_needs,
    .questions = alibi_questions,
    .check_with_prefix =
        [](const sluice_problem &problem) {
          refuse_with_prefix(problem, SLUICE_ALIBI, "SLUICE_ALIBI", "without SLUICE_ALIBI");
        },
    .check_call =
        [](const sluice_problem &problem, const tensors::TensorRules &, const sluice_args &args) {
          tensors::check_given("alibi_slopes", args.alibi_slopes, problem.flags & SLUICE_ALIBI,
                               "the problem's flags lack SLUICE_ALIBI");
        },
    .changes_scores = [](const sluice_problem &problem) { return (problem.flags & SLUICE_ALIBI) != 0; },
    .fill_call = [](package::AttentionKernargs &out, const sluice_problem &,
                    const sluice_args &call) { out.alibi_slopes = address_of(call.alibi_slopes); },
    .changed_score = score_with_alibi,
};

/// Other slopes for each sequence.
inline constexpr Feature alibi_by_sequence = {
    .call_needs = alibi_by_sequence_needs,
    .questions = alibi_by_sequence_questions,
    .check_call =
        [](const sluice_problem &, const tensors::TensorRules &, const sluice_args &args) {
          tensors::check_batch_stride("alibi_batch_stride", args.alibi_batch_stride, args.batch,
                                      args.alibi_slopes, "alibi_slopes");
        },
    .fill_call =
        [](package::AttentionKernargs &out, const sluice_problem &, const sluice_args &call) {
          out.alibi_batch_stride = used_stride(call.batch, call.alibi_batch_stride);
        },
};

} // namespace sluice::features
