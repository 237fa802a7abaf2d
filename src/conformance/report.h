//===- report.h - what became of a run, for people and for programs -------------------------------------===//
#pragma once

#include <cstdint>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

namespace sluice::test {

enum class Outcome : uint8_t { passed, failed, refused, skipped };

/// "passed" and so on.
const char *outcome_name(Outcome outcome);

struct Result {
  std::string name;
  Outcome outcome = Outcome::passed;
  std::string reason = {};        // what is wrong, or why it was refused or skipped; may have several lines
  std::string refused_field = {}; // of the problem or the call; empty unless the library refused
  std::string kernel = {};        // what ran; empty if nothing did
  double seconds = 0;
  double o_ratio = 0, lse_ratio = 0; // largest error, in tolerances
  std::string reproduce = {};        // the command line that runs it again
};

/// What ran, and where.
struct About {
  std::string command; // of the whole run
  std::string version, git_commit;
  std::string pack_id; // of the pack that the kernels come from
  std::string device;  // as it was asked for
  std::string chip, arch, device_name, runtime;
  uint32_t compute_units = 0;
  int32_t runtime_version = 0;
  uint64_t seed = 0;
};

struct Report {
  About about;
  std::string started; // 2025-01-31T12:00:00, UTC
  double seconds = 0;
  std::vector<Result> results;
  std::string summary; // the executor's own closing line

  size_t count(Outcome outcome) const;
  /// How many were refused, by the field that the refusal names; those that count as failed too.
  std::map<std::string, size_t> refused_fields() const;
  /// How many were skipped, by the reason.
  std::map<std::string, size_t> skip_reasons() const;
};

/// A line that says what runs where.
std::string heading(const About &about, size_t cases);
/// What failed and how to see it again, what was refused and skipped and why, and last the numbers of each.
void print_summary(const Report &report, std::FILE *log);

/// JUnit's XML: testsuites, one testsuite, a testcase for each result. What was refused counts as skipped
/// there.
std::string junit_text(const Report &report);
std::string json_text(const Report &report);

/// Words as a line that a shell takes apart into them again.
std::string shell_line(const std::vector<std::string> &words);

} // namespace sluice::test
