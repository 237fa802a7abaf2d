//===- progress.cpp - a progress bar on stderr ----------------------------------------------------------===//

#include "tools/shared/progress.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fmt/format.h>
#include <unistd.h>

namespace sluice::tools {

Progress::Progress(std::string label)
    : label(std::move(label)), begin(std::chrono::steady_clock::now()),
      is_terminal(isatty(STDERR_FILENO) == 1) {}

std::string progress_bar(double fraction, int width) {
  const int filled = int(std::clamp(fraction, 0.0, 1.0) * width);
  std::string bar(size_t(filled), '=');
  if (filled < width) bar += '>';
  bar.resize(size_t(width), ' ');
  return "[" + bar + "]";
}

void Progress::update(double fraction) {
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (!is_terminal || seconds < 1) return;
  const std::string state = std::isnan(fraction) ? ""
                                                 : fmt::format(" {} {:3.0f}%", progress_bar(fraction, 30),
                                                               100 * std::min(fraction, 1.0));
  fmt::print(stderr, "\r\033[K{}{} {:.0f} s", label, state, seconds);
  std::fflush(stderr);
  shown = true;
}

void Progress::finish() {
  if (shown) fmt::print(stderr, "\r\033[K");
  std::fflush(stderr);
  shown = false;
}

} // namespace sluice::tools
