//===- window.h - keys visible before and after the diagonal, and sink tokens ---------------------------===//
#pragma once

#include "calls/args.h"
#include "calls/problem.h"
#include "features/feature.h"

#include <algorithm>

namespace sluice::features {

inline std::string asked_window(const calls::Problem &p) {
  return support::text("flags has ",
                       p.flags & calls::window_left
                           ? support::text("SLUICE_MASK_WINDOW_LEFT (window_left ", p.window_left)
                           : support::text("SLUICE_MASK_WINDOW_RIGHT (window_right ", p.window_right),
                       ")");
}

inline constexpr Need window_needs[] = {
    {names::window, "flags",
     [](const calls::Problem &p) { return (p.flags & (calls::window_left | calls::window_right)) != 0; },
     asked_window, "no window"}};
inline constexpr Question window_questions[] = {{"window to the left", "`window_left`", names::window,
                                                 [](calls::Problem &p) {
                                                   p.flags |= calls::window_left;
                                                   p.window_left = 128;
                                                 },
                                                 "*_left*"},
                                                {"window to the right", "`window_right`", names::window,
                                                 [](calls::Problem &p) {
                                                   p.flags |= calls::window_right;
                                                   p.window_right = 128;
                                                 },
                                                 "*_right*"},
                                                {"sink tokens", "`sink_tokens`", names::window,
                                                 [](calls::Problem &p) {
                                                   p.flags |= calls::window_left;
                                                   p.window_left = 128;
                                                   p.sink_tokens = 4;
                                                 },
                                                 "*_keep*"}};

inline void check_window(const calls::Problem &problem) {
  tensors::check_needs_flag("window_left", problem.window_left, problem.flags & calls::window_left,
                            "SLUICE_MASK_WINDOW_LEFT");
  tensors::check_needs_flag("window_right", problem.window_right, problem.flags & calls::window_right,
                            "SLUICE_MASK_WINDOW_RIGHT");
  tensors::check_at_least("sink_tokens", problem.sink_tokens, 0);
  if (problem.sink_tokens != 0 && !(problem.flags & calls::window_left)) {
    tensors::invalid("sink_tokens", support::text("sink_tokens is ", problem.sink_tokens,
                                                  ", but flags lacks SLUICE_MASK_WINDOW_LEFT"));
  }
}

inline void fill_window(package::AttentionKernargs &out, const calls::Problem &problem) {
  if (problem.flags & calls::window_left) {
    out.window_left = std::min(problem.window_left, package::kernarg_no_window);
    out.sink_tokens = std::min(problem.sink_tokens, package::kernarg_no_window);
  }
  if (problem.flags & calls::window_right)
    out.window_right = std::min(problem.window_right, package::kernarg_no_window);
}

inline bool window_hides(const calls::Problem &problem, const calls::Args &, const Place &at) {
  const int64_t d = at.distance();
  if (problem.flags & calls::window_right && d > problem.window_right) return true;
  return problem.flags & calls::window_left && d < -int64_t{problem.window_left} &&
         at.key >= problem.sink_tokens;
}

inline constexpr Feature window = {
    .flags = calls::window_left | calls::window_right,
    .needs = window_needs,
    .questions = window_questions,
    .check_problem = check_window,
    .check_with_prefix =
        [](const calls::Problem &problem) {
          refuse_with_prefix(problem, calls::window_left);
          refuse_with_prefix(problem, calls::window_right);
        },
    .fill_problem = fill_window,
    .hides_by_distance = window_hides,
};

} // namespace sluice::features
