//===- window.h - keys visible before and after the diagonal, and sink tokens ---------------------------===//
#pragma once

#include "features/feature.h"

#include <algorithm>

namespace sluice::features {

inline std::string asked_window(const sluice_problem &p) {
  return support::text("flags has ",
                       p.flags & SLUICE_HAS_WINDOW_LEFT
                           ? support::text("SLUICE_HAS_WINDOW_LEFT (window_left ", p.window_left)
                           : support::text("SLUICE_HAS_WINDOW_RIGHT (window_right ", p.window_right),
                       ")");
}

inline constexpr Need window_needs[] = {{names::window, "flags",
                                         [](const sluice_problem &p) {
                                           return (p.flags &
                                                   (SLUICE_HAS_WINDOW_LEFT | SLUICE_HAS_WINDOW_RIGHT)) != 0;
                                         },
                                         asked_window, "no window"}};
inline constexpr Question window_questions[] = {{"window to the left", "`window_left`", names::window,
                                                 [](sluice_problem &p) {
                                                   p.flags |= SLUICE_HAS_WINDOW_LEFT;
                                                   p.window_left = 128;
                                                 },
                                                 "*_left*"},
                                                {"window to the right", "`window_right`", names::window,
                                                 [](sluice_problem &p) {
                                                   p.flags |= SLUICE_HAS_WINDOW_RIGHT;
                                                   p.window_right = 128;
                                                 },
                                                 "*_right*"},
                                                {"sink tokens", "`sink_tokens`", names::window,
                                                 [](sluice_problem &p) {
                                                   p.flags |= SLUICE_HAS_WINDOW_LEFT;
                                                   p.window_left = 128;
                                                   p.sink_tokens = 4;
                                                 },
                                                 "*_keep*"}};

inline void check_window(const sluice_problem &problem) {
  tensors::check_needs_flag("window_left", problem.window_left, problem.flags & SLUICE_HAS_WINDOW_LEFT,
                            "SLUICE_HAS_WINDOW_LEFT");
  tensors::check_needs_flag("window_right", problem.window_right, problem.flags & SLUICE_HAS_WINDOW_RIGHT,
                            "SLUICE_HAS_WINDOW_RIGHT");
  tensors::check_at_least("sink_tokens", problem.sink_tokens, 0);
  if (problem.sink_tokens != 0 && !(problem.flags & SLUICE_HAS_WINDOW_LEFT)) {
    tensors::invalid("sink_tokens", support::text("sink_tokens is ", problem.sink_tokens,
                                                  ", but flags lacks SLUICE_HAS_WINDOW_LEFT"));
  }
}

inline void fill_window(package::AttentionKernargs &out, const sluice_problem &problem) {
  if (problem.flags & SLUICE_HAS_WINDOW_LEFT) {
    out.window_left = std::min(problem.window_left, package::kernarg_no_window);
    out.sink_tokens = std::min(problem.sink_tokens, package::kernarg_no_window);
  }
  if (problem.flags & SLUICE_HAS_WINDOW_RIGHT)
    out.window_right = std::min(problem.window_right, package::kernarg_no_window);
}

inline bool window_hides(const sluice_problem &problem, const sluice_args &, const Place &at) {
  const int64_t d = at.distance();
  if (problem.flags & SLUICE_HAS_WINDOW_RIGHT && d > problem.window_right) return true;
  return problem.flags & SLUICE_HAS_WINDOW_LEFT && d < -int64_t{problem.window_left} &&
         at.key >= problem.sink_tokens;
}

inline constexpr Feature window = {
    .flags = SLUICE_HAS_WINDOW_LEFT | SLUICE_HAS_WINDOW_RIGHT,
    .needs = window_needs,
    .questions = window_questions,
    .check_problem = check_window,
    .check_with_prefix =
        [](const sluice_problem &problem) {
          refuse_with_prefix(problem, SLUICE_HAS_WINDOW_LEFT, "SLUICE_HAS_WINDOW_LEFT", "no window");
          refuse_with_prefix(problem, SLUICE_HAS_WINDOW_RIGHT, "SLUICE_HAS_WINDOW_RIGHT", "no window");
        },
    .fill_problem = fill_window,
    .hides_by_distance = window_hides,
};

} // namespace sluice::features
