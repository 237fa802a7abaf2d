//===- suppressions.cpp - reports that a user does not want ---------------------------------------------===//
#include "emulator/check/suppressions.h"

#include <algorithm>
#include <stdexcept>

#include "support/hex.h"

namespace sluice::emulator {

namespace {

constexpr std::string_view blanks = " \t\r";

std::vector<std::string> words_of(std::string_view line) {
  std::vector<std::string> words;
  for (size_t at = line.find_first_not_of(blanks); at != std::string_view::npos;) {
    const size_t end = std::min(line.find_first_of(blanks, at), line.size());
    words.emplace_back(line.substr(at, end - at));
    at = line.find_first_not_of(blanks, end);
  }
  return words;
}

/// Whether a pattern names at least one kind of report that can be suppressed.
bool names_a_kind(std::string_view pattern) {
  for (const std::string_view name : report_kind_names()) {
    const ReportKind kind = *report_kind_by_name(name);
    if (!ends_launch(kind) && matches_pattern(pattern, name)) return true;
  }
  return false;
}

/// Each "file:line" of a report's source, and its address.
bool is_place(std::string_view pattern, const Report &report) {
  if (pattern == "*") return true;
  if (report.disassembly.empty()) return false;
  constexpr std::string_view separator = ", inlined at ";
  for (std::string_view left = report.source; !left.empty();) {
    const size_t end = std::min(left.find(separator), left.size());
    if (matches_pattern(pattern, left.substr(0, end))) return true;
    left.remove_prefix(std::min(end + separator.size(), left.size()));
  }
  return matches_pattern(pattern, support::hex(report.pc));
}

} // namespace

bool matches_pattern(std::string_view pattern, std::string_view text) {
  size_t at = 0;
  size_t in_text = 0;
  size_t star = std::string_view::npos; // the last *, and where what follows it was last tried
  size_t tried = 0;
  while (in_text < text.size()) {
    if (at < pattern.size() && pattern[at] == '*') {
      star = at++;
      tried = in_text;
    } else if (at < pattern.size() && (pattern[at] == '?' || pattern[at] == text[in_text])) {
      ++at;
      ++in_text;
    } else if (star != std::string_view::npos) {
      at = star + 1;
      in_text = ++tried;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', at) == std::string_view::npos;
}

Suppressions::Suppressions(std::string_view text) {
  for (uint32_t number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::vector<std::string> words = words_of(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (words.empty() || words[0].starts_with('#')) continue;
    const std::string where = "line " + std::to_string(number) + ": ";
    if (words.size() != 3)
      throw std::invalid_argument(
          where + "has " + std::to_string(words.size()) + (words.size() == 1 ? " word" : " words") +
          "; a rule has three: patterns of the kernel, the kind of report and the place");
    if (!names_a_kind(words[1]))
      throw std::invalid_argument(where + "'" + words[1] + "' describes no kind of report" +
                                  (report_kind_by_name(words[1]) ? " that can be suppressed" : ""));
    all.push_back({number, words[0], words[1], words[2]});
  }
  if (all.empty()) throw std::invalid_argument("has no rules");
}

uint32_t Suppressions::line_for(const Report &report) const {
  if (ends_launch(report.kind)) return 0;
  const auto found = std::ranges::find_if(all, [&](const Rule &rule) {
    return matches_pattern(rule.kind, report_kind_name(report.kind)) &&
           matches_pattern(rule.kernel, report.kernel) && is_place(rule.place, report);
  });
  return found == all.end() ? 0 : found->line;
}

} // namespace sluice::emulator
