//===- progress.h - a progress bar on stderr ------------------------------------------------------------===//
//
// Appears only on a terminal, and only when something takes longer than a second: elsewhere stderr is for
// what went wrong.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <chrono>
#include <string>

namespace sluice::tools {

class Progress {
public:
  explicit Progress(std::string label);

  /// `fraction` of the work done, 0 to 1; NaN if nobody knows.
  void update(double fraction);
  /// Takes the bar off the terminal again.
  void finish();

private:
  std::string label;
  std::chrono::steady_clock::time_point begin;
  bool is_terminal;
  bool shown = false;
};

/// "[=====>    ]" with `width` characters between the brackets.
std::string progress_bar(double fraction, int width);

} // namespace sluice::tools
