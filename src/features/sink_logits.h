//===- sink_logits.h - a score for each head that only the denominator has ------------------------------===//
//
// It joins the results over all keys, not those over a split or a prefix: the runtime fills it in with the
// place of the results, and the reference's loop over the keys begins with it.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "features/feature.h"

namespace sluice::features {

inline constexpr Need sink_logits_needs[] = {SLUICE_FLAG_NEED(names::sink_logits, SLUICE_SINK_LOGITS)};
inline constexpr Question sink_logits_questions[] = {
    {"sink logits", "`SLUICE_SINK_LOGITS`", names::sink_logits,
     [](sluice_problem &p) { p.flags |= SLUICE_SINK_LOGITS; }, "*_sinks*"}};

inline constexpr Feature sink_logits = {
    .flags = SLUICE_SINK_LOGITS,
    .needs = sink_logits_needs,
    .questions = sink_logits_questions,
    .check_call =
        [](const sluice_problem &problem, const tensors::TensorRules &, const sluice_args &args) {
          tensors::check_given("sink_logits", args.sink_logits, problem.flags & SLUICE_SINK_LOGITS,
                               "the problem's flags lack SLUICE_SINK_LOGITS");
        },
};

} // namespace sluice::features
