//===- report.cpp - the results of a run, for people ----------------------------------------------------===//

#include "conformance/run/report.h"

#include <algorithm>
#include <array>

namespace sluice::conformance {

namespace {

std::string first_line(const std::string &text) {
  return text.substr(0, text.find('\n'));
}

} // namespace

const char *outcome_name(Outcome outcome) {
  constexpr std::array names = {"passed", "failed", "refused", "skipped"};
  return names[size_t(outcome)];
}

size_t Report::count(Outcome outcome) const {
  return size_t(std::ranges::count(results, outcome, &Result::outcome));
}

std::map<std::string, size_t> Report::refused_fields() const {
  std::map<std::string, size_t> fields;
  for (const Result &result : results)
    if (!result.refused_field.empty()) ++fields[result.refused_field];
  return fields;
}

std::map<std::string, size_t> Report::skip_reasons() const {
  std::map<std::string, size_t> reasons;
  for (const Result &result : results)
    if (result.outcome == Outcome::skipped) ++reasons[result.reason];
  return reasons;
}

std::string heading(const About &about, size_t cases) {
  std::string text = "sluice " + about.version + " (" + about.git_commit + "), kernel pack " + about.pack_id +
                     ", on " + about.device;
  if (!about.device_name.empty()) text += " (" + about.device_name + ")";
  if (!about.arch.empty())
    text += ", " + about.arch + ", " + std::to_string(about.compute_units) + " compute units";
  if (!about.runtime.empty())
    text += ", through " + about.runtime + " " + std::to_string(about.runtime_version);
  return text + ", seed " + std::to_string(about.seed) + ": " + std::to_string(cases) +
         (cases == 1 ? " case" : " cases");
}

void print_summary(const Report &report, std::FILE *log) {
  const size_t failed = report.count(Outcome::failed);
  if (failed != 0) std::fputs("\nfailed:\n", log);
  for (const Result &result : report.results)
    if (result.outcome == Outcome::failed)
      std::fprintf(log, "  %s: %s\n    %s\n", result.name.c_str(), first_line(result.reason).c_str(),
                   result.reproduce.c_str());
  const auto refused = report.refused_fields();
  if (!refused.empty()) std::fputs("refused, by field:", log);
  for (const auto &[field, count] : refused)
    std::fprintf(log, " %s %zu", field.c_str(), count);
  if (!refused.empty()) std::fputs("\n", log);
  for (const auto &[reason, count] : report.skip_reasons())
    std::fprintf(log, "%zu skipped: %s\n", count, reason.c_str());
  if (!report.summary.empty()) std::fprintf(log, "%s\n", report.summary.c_str());
  std::fprintf(log, "%zu passed, %zu failed, %zu refused, %zu skipped on %s in %.1f s\n",
               report.count(Outcome::passed), failed, report.count(Outcome::refused),
               report.count(Outcome::skipped), report.about.device.c_str(), report.seconds);
}

std::string shell_line(const std::vector<std::string> &words) {
  std::string line;
  for (const std::string &word : words) {
    const bool plain = !word.empty() && word.find_first_not_of("abcdefghijklmnopqrstuvwxyz"
                                                               "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                                               "0123456789_-+=:,./@%") == word.npos;
    if (!line.empty()) line += ' ';
    if (plain) {
      line += word;
      continue;
    }
    line += '\'';
    for (char c : word)
      line += c == '\'' ? std::string("'\\''") : std::string(1, c);
    line += '\'';
  }
  return line;
}

} // namespace sluice::conformance
