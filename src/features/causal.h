//===- causal.h - keys after the diagonal are hidden, for all sequences or for some ---------------------===//
#pragma once

#include "features/feature.h"

namespace sluice::features {

inline constexpr Need causal_needs[] = {SLUICE_FLAG_NEED(names::causal, SLUICE_CAUSAL)};
inline constexpr Need causal_by_sequence_needs[] = {
    SLUICE_FLAG_NEED(names::causal_by_sequence, SLUICE_CAUSAL_BY_SEQUENCE)};
inline constexpr Question causal_questions[] = {{"causal, bottom-right", "`SLUICE_CAUSAL`", names::causal,
                                                 [](sluice_problem &p) { p.flags |= SLUICE_CAUSAL; },
                                                 "*_causal_*"},
                                                {"causal, top-left", "`mask_alignment`", names::causal,
                                                 [](sluice_problem &p) {
                                                   p.flags |= SLUICE_CAUSAL;
                                                   p.mask_alignment = SLUICE_TOP_LEFT;
                                                 },
                                                 "*_topleft_*"}};
inline constexpr Question causal_by_sequence_questions[] = {
    {"causal for some sequences", "`SLUICE_CAUSAL_BY_SEQUENCE`", names::causal_by_sequence,
     [](sluice_problem &p) { p.flags |= SLUICE_CAUSAL_BY_SEQUENCE; }, "*_somecausal*"}};

inline void check_causal(const sluice_problem &problem) {
  if (!(problem.flags & SLUICE_CAUSAL)) return;
  if (problem.flags & SLUICE_HAS_WINDOW_RIGHT) {
    tensors::invalid("flags", "flags has SLUICE_CAUSAL and SLUICE_HAS_WINDOW_RIGHT; it must have at most one "
                              "of them: SLUICE_CAUSAL means a window_right of 0");
  }
  if (problem.flags & SLUICE_CAUSAL_BY_SEQUENCE) {
    tensors::invalid(
        "flags", "flags has SLUICE_CAUSAL and SLUICE_CAUSAL_BY_SEQUENCE; it must have at most one of them");
  }
}

inline constexpr Feature causal = {
    .flags = SLUICE_CAUSAL,
    .needs = causal_needs,
    .questions = causal_questions,
    .check_problem = check_causal,
    .fill_problem =
        [](package::AttentionKernargs &out, const sluice_problem &problem) {
          if (problem.flags & SLUICE_CAUSAL) out.window_right = 0;
        },
    .hides_by_distance = [](const sluice_problem &problem, const sluice_args &,
                            const Place &at) { return problem.flags & SLUICE_CAUSAL && at.distance() > 0; },
};

inline constexpr Feature causal_by_sequence = {
    .flags = SLUICE_CAUSAL_BY_SEQUENCE,
    .needs = causal_by_sequence_needs,
    .questions = causal_by_sequence_questions,
    .check_sequences =
        [](const sluice_problem &problem, const tensors::TensorRules &, const sluice_args &args) {
          tensors::check_given("causal", args.causal, problem.flags & SLUICE_CAUSAL_BY_SEQUENCE,
                               "the problem's flags lack SLUICE_CAUSAL_BY_SEQUENCE");
        },
    .fill_problem =
        [](package::AttentionKernargs &out, const sluice_problem &problem) {
          if (problem.flags & SLUICE_CAUSAL_BY_SEQUENCE) out.score_flags |= package::score_of_sequence;
        },
    .fill_call = [](package::AttentionKernargs &out, const sluice_problem &,
                    const sluice_args &call) { out.causal = address_of(call.causal); },
    .hides_by_distance =
        [](const sluice_problem &problem, const sluice_args &args, const Place &at) {
          return problem.flags & SLUICE_CAUSAL_BY_SEQUENCE && args.causal[at.sequence] != 0 &&
                 at.distance() > 0;
        },
};

} // namespace sluice::features
