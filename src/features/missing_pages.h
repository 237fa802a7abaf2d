//===- missing_pages.h - keys of negative page numbers are hidden ---------------------------------------===//
//
// The other rules of page tables are with the checks of pages, and its row of the tables is among theirs.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "calls/problem.h"
#include "features/feature.h"

namespace sluice::features {

inline constexpr Need missing_pages_needs[] = {SLUICE_FLAG_NEED(names::missing_pages, calls::missing_pages)};

inline constexpr Feature missing_pages = {
    .flags = calls::missing_pages,
    .needs = missing_pages_needs,
    .check_with_prefix =
        [](const calls::Problem &problem) { refuse_with_prefix(problem, calls::missing_pages); },
    .fill_problem =
        [](package::AttentionKernargs &out, const calls::Problem &problem) {
          if (problem.flags & calls::missing_pages) out.score_flags |= package::score_pages_hidden;
        },
};

} // namespace sluice::features
