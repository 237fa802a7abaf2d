//===- causal.h - keys after the diagonal are hidden, for all sequences or for some ---------------------===//
#pragma once

#include "calls/args.h"
#include "calls/problem.h"
#include "features/feature.h"

namespace sluice::features {

inline constexpr Need causal_needs[] = {SLUICE_FLAG_NEED(names::causal, calls::causal)};
inline constexpr Need causal_by_sequence_needs[] = {
    SLUICE_FLAG_NEED(names::causal_by_sequence, calls::causal_by_sequence)};
inline constexpr Question causal_questions[] = {
    {"causal, bottom-right", "`SLUICE_MASK_CAUSAL`", names::causal,
     [](calls::Problem &p) { p.flags |= calls::causal; }, "*_causal_*"},
    {"causal, top-left", "`alignment`", names::causal,
     [](calls::Problem &p) {
       p.flags |= calls::causal;
       p.mask_alignment = SLUICE_TOP_LEFT;
     },
     "*_topleft_*"}};
inline constexpr Question causal_by_sequence_questions[] = {
    {"causal for some sequences", "`SLUICE_MASK_CAUSAL_BY_SEQUENCE`", names::causal_by_sequence,
     [](calls::Problem &p) { p.flags |= calls::causal_by_sequence; }, "*_somecausal*"}};

inline void check_causal(const calls::Problem &problem) {
  if (!(problem.flags & calls::causal)) return;
  if (problem.flags & calls::window_right) {
    tensors::invalid("flags",
                     "flags has SLUICE_MASK_CAUSAL and SLUICE_MASK_WINDOW_RIGHT; it must have at most one "
                     "of them: SLUICE_MASK_CAUSAL means a window_right of 0");
  }
  if (problem.flags & calls::causal_by_sequence) {
    tensors::invalid(
        "flags",
        "flags has SLUICE_MASK_CAUSAL and SLUICE_MASK_CAUSAL_BY_SEQUENCE; it must have at most one of them");
  }
}

inline constexpr Feature causal = {
    .flags = calls::causal,
    .needs = causal_needs,
    .questions = causal_questions,
    .check_problem = check_causal,
    .fill_problem =
        [](package::AttentionKernargs &out, const calls::Problem &problem) {
          if (problem.flags & calls::causal) out.window_right = 0;
        },
    .hides_by_distance = [](const calls::Problem &problem, const calls::Args &,
                            const Place &at) { return problem.flags & calls::causal && at.distance() > 0; },
};

inline constexpr Feature causal_by_sequence = {
    .flags = calls::causal_by_sequence,
    .needs = causal_by_sequence_needs,
    .questions = causal_by_sequence_questions,
    .check_sequences =
        [](const calls::Problem &problem, const tensors::TensorRules &, const calls::Args &args) {
          tensors::check_given("causal", args.causal, problem.flags & calls::causal_by_sequence,
                               "the problem's flags lack SLUICE_MASK_CAUSAL_BY_SEQUENCE");
        },
    .fill_problem =
        [](package::AttentionKernargs &out, const calls::Problem &problem) {
          if (problem.flags & calls::causal_by_sequence) out.score_flags |= package::score_of_sequence;
        },
    .fill_call = [](package::AttentionKernargs &out, const calls::Problem &,
                    const calls::Args &call) { out.causal = address_of(call.causal); },
    .hides_by_distance =
        [](const calls::Problem &problem, const calls::Args &args, const Place &at) {
          return problem.flags & calls::causal_by_sequence && args.causal[at.sequence] != 0 &&
                 at.distance() > 0;
        },
};

} // namespace sluice::features
