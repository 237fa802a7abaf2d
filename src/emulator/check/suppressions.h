//===- suppressions.h - reports that a user does not want -----------------------------------------------===//
//
// A text of rules, one a line, each of three patterns separated by blanks: the kernel's name, the kind of the
// report, and its place. In a pattern, * stands for any characters and ? for one. The place of a report is
// "file:line" with the whole path, its instruction's or that of a call it was inlined into; without debug
// information it is the address in the code object in hexadecimal. A place of "*" also matches reports that
// have no instruction. Empty lines, and those that begin with #, are comments.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "emulator/check/report.h"

namespace sluice::emulator {

/// Whether a pattern with * and ? describes all of a text.
bool matches_pattern(std::string_view pattern, std::string_view text);

class Suppressions {
public:
  struct Rule {
    uint32_t line; // in the text, from 1
    std::string kernel;
    std::string kind;
    std::string place;
  };

  /// Throws std::invalid_argument, with the line, for a rule that is not of three patterns or whose kind is
  /// that of no report that can be suppressed; also for a text without rules.
  explicit Suppressions(std::string_view text);

  /// The line of the first rule that describes a report; 0 without one. A launch that has not run to its end
  /// cannot be made good: reports of that are never suppressed.
  uint32_t line_for(const Report &report) const;

  const std::vector<Rule> &rules() const { return all; }

private:
  std::vector<Rule> all;
};

} // namespace sluice::emulator
