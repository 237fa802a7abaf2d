//===- exec_junit.cpp - what a program's launches have reported, as JUnit's XML -------------------------===//
#include "tools/emu/counted.h"
#include "tools/emu/exec_report.h"

#include <algorithm>
#include <fmt/format.h>
#include <iterator>

namespace sluice::tools::emu {

namespace {

using emulator::Report;

/// XML 1.0 has no way to write most control characters.
std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    switch (c) {
    case '&':
      result += "&amp;";
      break;
    case '<':
      result += "&lt;";
      break;
    case '>':
      result += "&gt;";
      break;
    case '"':
      result += "&quot;";
      break;
    default:
      result += uint8_t(c) >= 0x20 || c == '\n' || c == '\t' ? c : '?';
    }
  }
  return result;
}

struct TestCase {
  std::string errors;    // texts
  std::string warnings;  // texts
  std::string first;     // kind of the first error
  uint64_t failures = 0; // number of errors

  void add(const Report &report) {
    (report.is_error() ? errors : warnings) += emulator::to_text(report);
    if (!report.is_error()) return;
    if (failures++ == 0) first = emulator::report_kind_name(report.kind);
  }
};

std::string test_case_text(const std::string &program, const std::string &name, const TestCase &test) {
  std::string text =
      fmt::format("    <testcase classname=\"{}\" name=\"{}\">\n", escaped(program), escaped(name));
  if (test.failures != 0)
    fmt::format_to(std::back_inserter(text), "      <failure type=\"{}\" message=\"{}\">{}</failure>\n",
                   escaped(test.first), escaped(counted(test.failures, "error")), escaped(test.errors));
  if (!test.warnings.empty())
    fmt::format_to(std::back_inserter(text), "      <system-out>{}</system-out>\n", escaped(test.warnings));
  return text + "    </testcase>\n";
}

} // namespace

std::string exec_junit(const ExecRun &run) {
  const std::string &program = run.options.program[0];
  std::map<std::string, TestCase> tests; // by the name of the kernel, or of a copy or a fill
  for (const auto &[kernel, launches] : run.results.kernels)
    tests[kernel];
  for (const Report &report : run.results.reports)
    tests[report.kernel].add(report);
  TestCase status;
  if (run.status != 0) {
    status.failures = 1;
    status.first = "status";
    status.errors = fmt::format("the program ended with status {}\n", run.status);
  }
  if (run.options.fidelity) status.warnings = emulator::to_text(run.results.fidelity);
  size_t failures = status.failures;
  std::string cases = test_case_text(program, "status of the program", status);
  for (const auto &[name, test] : tests) {
    failures += test.failures != 0;
    cases += test_case_text(program, name, test);
  }
  const std::string sums =
      fmt::format("tests=\"{}\" failures=\"{}\" errors=\"0\"", tests.size() + 1, failures);
  return fmt::format("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"sluice-emu exec\" {}>\n"
                     "  <testsuite name=\"{}\" {} skipped=\"0\">\n{}  </testsuite>\n</testsuites>\n",
                     sums, escaped(program), sums, cases);
}

} // namespace sluice::tools::emu
