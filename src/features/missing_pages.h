//===- missing_pages.h - keys of negative page numbers are hidden ---------------------------------------===//
//
// The other rules of page tables are with the checks of pages, and its row of the tables is among theirs.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "features/feature.h"

namespace sluice::features {

inline constexpr Need missing_pages_needs[] = {
    SLUICE_FLAG_NEED(names::missing_pages, SLUICE_MISSING_PAGES_HIDDEN)};

inline constexpr Feature missing_pages = {
    .flags = SLUICE_MISSING_PAGES_HIDDEN,
    .needs = missing_pages_needs,
    .check_with_prefix =
        [](const sluice_problem &problem) {
          refuse_with_prefix(problem, SLUICE_MISSING_PAGES_HIDDEN, "SLUICE_MISSING_PAGES_HIDDEN",
                             "without SLUICE_MISSING_PAGES_HIDDEN");
        },
    .fill_problem =
        [](package::AttentionKernargs &out, const sluice_problem &problem) {
          if (problem.flags & SLUICE_MISSING_PAGES_HIDDEN) out.score_flags |= package::score_pages_hidden;
        },
};

} // namespace sluice::features
