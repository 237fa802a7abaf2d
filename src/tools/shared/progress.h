//===- progress.h - a progress bar on stderr ------------------------------------------------------------===//
//
// Appears only on a terminal, and only if something takes longer than a second: elsewhere stderr is for
// errors.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <chrono>
#include <string>

namespace sluice::tools {

class Progress {
public:
  explicit Progress(std::string label);

  /// `fraction` of the work done, 0 to 1; NaN if unknown.
  void update(double fraction);
  /// Removes the bar from the terminal.
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
