//===- sink_logits.h - a score for each head that only the denominator has ------------------------------===//
//
// It joins the results over all keys, not those over a split or a prefix: the runtime fills it in with the
// place of the results, and the reference's loop over the keys begins with it.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "calls/args.h"
#include "calls/problem.h"
#include "features/feature.h"

namespace sluice::features {

inline constexpr Need sink_logits_needs[] = {SLUICE_FLAG_NEED(names::sink_logits, calls::sinks)};
inline constexpr Question sink_logits_questions[] = {
    {"sink logits", "`SLUICE_SCORES_SINK`", names::sink_logits,
     [](calls::Problem &p) { p.flags |= calls::sinks; }, "*_sinks*"}};

inline constexpr Feature sink_logits = {
    .flags = calls::sinks,
    .needs = sink_logits_needs,
    .questions = sink_logits_questions,
    .check_call =
        [](const calls::Problem &problem, const tensors::TensorRules &, const calls::Args &args) {
          tensors::check_given("sink_logits", args.sink_logits, problem.flags & calls::sinks,
                               "the problem's flags lack SLUICE_SCORES_SINK");
        },
};

} // namespace sluice::features
