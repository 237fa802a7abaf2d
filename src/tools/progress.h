//===- progress.h - a progress bar on stderr ------------------------------------------------------------===//
//
// Appears only when something takes longer than a second, and only moves a cursor on a terminal; elsewhere it
// writes a line per tenth.
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
  int tenths = 0;
};

/// "[=====>    ]" with `width` characters between the brackets.
std::string progress_bar(double fraction, int width);

} // namespace sluice::tools
