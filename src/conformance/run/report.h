//===- report.h - the results of a run, for people and for programs -------------------------------------===//
#pragma once

#include <cstdint>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

namespace sluice::conformance {

enum class Outcome : uint8_t { passed, failed, refused, skipped };

/// "passed" and so on.
const char *outcome_name(Outcome outcome);

struct Result {
  std::string name;
  Outcome outcome = Outcome::passed;
  std::string reason = {};        // the error, or why it was refused or skipped; may have several lines
  std::string refused_field = {}; // of the problem or the call; empty unless the library refused
  std::string kernel = {};        // the kernel that ran; empty if none did
  double seconds = 0;
  double o_ratio = 0, lse_ratio = 0; // largest error, in tolerances
  std::string reproduce = {};        // the command line that reruns it
};

/// Describes a run and its device.
struct About {
  std::string command; // of the whole run
  std::string version, git_commit;
  std::string pack_id; // of the pack that contains the kernels
  std::string device;  // as requested
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
  /// The number of refused cases by the field that the refusal names, including those that count as failed.
  std::map<std::string, size_t> refused_fields() const;
  /// The number of skipped cases by reason.
  std::map<std::string, size_t> skip_reasons() const;
};

/// A line that says what runs where.
std::string heading(const About &about, size_t cases);
/// The failures and how to reproduce them, the refusals and skips with their reasons, and finally the counts.
void print_summary(const Report &report, std::FILE *log);

/// JUnit's XML: testsuites, one testsuite, a testcase for each result. Refused cases count as skipped there.
std::string junit_text(const Report &report);
std::string json_text(const Report &report);

/// The words as a line that a shell splits into them again.
std::string shell_line(const std::vector<std::string> &words);

} // namespace sluice::conformance
