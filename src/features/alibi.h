//===- alibi.h - a slope for each head, times the distance of a key (ALiBi) -----------------------------===//
#pragma once

#include "calls/args.h"
#include "calls/problem.h"
#include "features/feature.h"

#include <cmath>

namespace sluice::features {

inline constexpr Need alibi_needs[] = {SLUICE_FLAG_NEED(names::alibi, calls::alibi)};
inline constexpr CallNeed alibi_by_sequence_needs[] = {
    {names::alibi_by_sequence, "alibi_batch_stride", "0",
     [](const calls::Problem &, const calls::Args &a) { return a.alibi_batch_stride != 0 && a.batch > 1; }}};
inline constexpr Question alibi_questions[] = {{"ALiBi", "`SLUICE_SCORES_ALIBI`", names::alibi,
                                                [](calls::Problem &p) { p.flags |= calls::alibi; },
                                                "*_alibi*"}};
inline constexpr Question alibi_by_sequence_questions[] = {
    {"ALiBi slopes per sequence", "`alibi_stride`", names::alibi_by_sequence, nullptr, "*_alibi_each*"}};

inline double score_with_alibi(const calls::Problem &problem, const calls::Args &args, const Place &at,
                               double score) {
  if (!(problem.flags & calls::alibi)) return score;
  const double slope = args.alibi_slopes[at.sequence * args.alibi_batch_stride + at.q_head];
  return score - slope * std::fabs(double(at.distance()));
}

inline constexpr Feature alibi = {
    .flags = calls::alibi,
    .needs = alibi_needs,
    .questions = alibi_questions,
    .check_with_prefix = [](const calls::Problem &problem) { refuse_with_prefix(problem, calls::alibi); },
    .check_call =
        [](const calls::Problem &problem, const tensors::TensorRules &, const calls::Args &args) {
          tensors::check_given("alibi_slopes", args.alibi_slopes, problem.flags & calls::alibi,
                               "the problem's flags lack SLUICE_SCORES_ALIBI");
        },
    .changes_scores = [](const calls::Problem &problem) { return (problem.flags & calls::alibi) != 0; },
    .fill_call = [](package::AttentionKernargs &out, const calls::Problem &,
                    const calls::Args &call) { out.alibi_slopes = address_of(call.alibi_slopes); },
    .changed_score = score_with_alibi,
};

/// Other slopes for each sequence.
inline constexpr Feature alibi_by_sequence = {
    .call_needs = alibi_by_sequence_needs,
    .questions = alibi_by_sequence_questions,
    .check_call =
        [](const calls::Problem &, const tensors::TensorRules &, const calls::Args &args) {
          tensors::check_batch_stride("alibi_batch_stride", args.alibi_batch_stride, args.batch,
                                      args.alibi_slopes, "alibi_slopes");
        },
    .fill_call =
        [](package::AttentionKernargs &out, const calls::Problem &, const calls::Args &call) {
          out.alibi_batch_stride = used_stride(call.batch, call.alibi_batch_stride);
        },
};

} // namespace sluice::features
