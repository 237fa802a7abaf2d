//===- main.cpp - runs the conformance suite on one executor --------------------------------------------===//
//
// Exit status: 0: no case failed; 1: a case failed; 2: the command line is wrong; 3: the device does not
// exist.
//
//===----------------------------------------------------------------------------------------------------===//
#include "conformance/run/options.h"
#include "conformance/run/runner.h"
#include "conformance/run/suite.h"

#include "tools/shared/output_file.h"
#include "tools/shared/tool_error.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <fmt/format.h>
#include <fnmatch.h>
#include <optional>
#include <sluice/sluice.h>
#include <span>
#include <unistd.h>

namespace {

using namespace sluice::conformance;
using sluice::tools::OutputFile;

// An MI300X is assumed for lists, and for reports about a device that is not present.
constexpr uint32_t usual_compute_units = 304;

enum ExitStatus { exit_passed, exit_failed, exit_usage, exit_no_device };

bool matches(const AnyCase &c, const std::string &pattern) {
  return fnmatch(pattern.c_str(), name_of(c).c_str(), 0) == 0;
}

std::vector<AnyCase> chosen_cases(const Options &options, uint32_t compute_units) {
  const std::vector<AnyCase> cases =
      suite(Target(options.pack, compute_units), options.part, options.level, options.device == "reference");
  for (const std::string &pattern : options.patterns)
    if (std::ranges::none_of(cases, [&](const AnyCase &c) { return matches(c, pattern); }))
      throw UsageError("--filter is '" + pattern + "'; no case" +
                       (options.part.empty() ? "" : " of the part " + options.part) + " has such a name");
  std::vector<AnyCase> chosen;
  size_t index = 0;
  for (const AnyCase &c : cases) {
    if (index++ % options.shards != options.shard) continue;
    if (!options.patterns.empty() &&
        std::ranges::none_of(options.patterns, [&](const auto &pattern) { return matches(c, pattern); }))
      continue;
    set_seed(chosen.emplace_back(c), options.seed);
  }
  if (chosen.empty())
    throw UsageError(fmt::format("--shard is '{}/{}'; no case is in it", options.shard, options.shards));
  return chosen;
}

/// The pack's id (docs/formats/pack.md): the checksum of its manifest.
std::string id_of(const Pack &pack) {
  constexpr size_t place = 32;
  uint64_t checksum = 0;
  if (pack.size() < place + sizeof checksum) return "";
  std::memcpy(&checksum, pack.data() + place, sizeof checksum);
  return fmt::format("{:#x}", checksum);
}

About about_of(const Options &options, const std::string &command) {
  // It stays empty for a library without built-in kernels.
  sluice_build build;
  sluice_build_init(&build, sizeof build);
  sluice_build_info(&build, nullptr);
  About about;
  about.command = command;
  about.version = sluice_version();
  about.git_commit = build.git_commit;
  about.pack_id = options.pack.empty() ? build.pack_id : id_of(options.pack);
  about.device = options.device;
  about.seed = options.seed;
  return about;
}

std::string now() {
  const std::time_t seconds = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  char text[sizeof "2025-01-31T12:00:00"] = {};
  std::strftime(text, sizeof text, "%FT%T", &utc);
  return text;
}

/// The files that a run writes; until the end, files of the same names are unchanged.
class ReportFiles {
public:
  explicit ReportFiles(const Options &options) {
    if (!options.junit.empty()) junit.emplace("--junit", options.junit);
    if (!options.json.empty()) json.emplace("--json", options.json);
    if (junit && json) OutputFile::refuse_same(*junit, *json);
  }
  /// An error in one file does not lose the other: a run may have taken long.
  void publish(const Report &report) {
    std::string failures;
    if (junit) publish(*junit, junit_text(report), failures);
    if (json) publish(*json, json_text(report), failures);
    if (!failures.empty()) throw std::runtime_error(failures);
  }

private:
  static void publish(OutputFile &file, const std::string &text, std::string &failures) {
    try {
      file.write({std::as_bytes(std::span(text))});
      file.publish();
    } catch (const sluice::tools::ToolError &error) {
      failures += (failures.empty() ? "" : "; ") + std::string(error.what());
    }
  }
  std::optional<OutputFile> junit, json;
};

/// Problems that the executor finds outside of the cases, as cases of their own.
void add_closing_results(const Options &options, Executor &executor, Report &report) {
  const auto add = [&](const std::string &name, const std::string &reason) {
    std::printf("FAIL %s\n", reason.c_str());
    report.results.push_back({.name = name, .outcome = Outcome::failed, .reason = reason});
    report.results.back().reproduce = report.about.command;
  };
  if (options.all_kernels)
    for (const std::string &kernel : executor.unused_kernels())
      add(kernel, "no case used " + kernel);
  try {
    report.summary = executor.summary();
  } catch (const std::exception &error) {
    add("the executor", error.what());
  }
}

int run(const Options &options, const std::vector<std::string> &words) {
  Report report;
  report.about = about_of(options, shell_line(words));
  std::unique_ptr<Executor> executor;
  std::string not_here;
  try {
    if (!options.device.empty()) executor = make_executor(options.device, options.settings, options.pack);
  } catch (const NotHere &reason) {
    not_here = reason.what();
  }
  if (executor) executor->describe(report.about);
  const uint32_t compute_units = report.about.compute_units;
  const std::vector<AnyCase> cases =
      chosen_cases(options, compute_units != 0 ? compute_units : usual_compute_units);
  if (options.list) {
    for (const AnyCase &c : cases)
      std::puts(name_of(c).c_str());
    return exit_passed;
  }
  report.started = now();
  ReportFiles files(options);
  const auto begin = std::chrono::steady_clock::now();
  int status = exit_no_device;
  if (executor) {
    std::printf("%s\n", heading(report.about, cases.size()).c_str());
    report.results = run_cases(cases, *executor, options.refused_fails, stdout);
    for (Result &result : report.results)
      result.reproduce = command_of(words.front(), options, result.name);
    add_closing_results(options, *executor, report);
    status = report.count(Outcome::failed) == 0 ? exit_passed : exit_failed;
  } else {
    std::printf("SKIPPED: %s is not available: %s\n", options.device.c_str(), not_here.c_str());
    for (const AnyCase &c : cases)
      report.results.push_back({.name = name_of(c), .outcome = Outcome::skipped, .reason = not_here});
  }
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  print_summary(report, stdout);
  const bool is_told = std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
  files.publish(report);
  if (!is_told) throw std::runtime_error("the standard output cannot be written");
  return status;
}

/// HIP aborts the process if a kernel faults: then only this handler can name the case.
void tell_case(int signal) {
  if (const char *name = running_case())
    for (const char *part : {"sluice-conformance: the process ended in the case ", name, "\n"})
      if (::write(STDERR_FILENO, part, std::strlen(part)) < 0) break;
  ::raise(signal);
}

void tell_case_of_fatal_signals() {
  struct sigaction action{}, before{};
  action.sa_handler = tell_case;
  action.sa_flags = SA_RESETHAND;
  // A sanitizer's handler stays: it says more.
  for (const int signal : {SIGABRT, SIGBUS, SIGSEGV})
    if (::sigaction(signal, nullptr, &before) == 0 && before.sa_handler == SIG_DFL)
      ::sigaction(signal, &action, nullptr);
}

int complain(const std::exception &error, ExitStatus status) {
  std::fflush(stdout);
  std::fprintf(stderr, "sluice-conformance: %s\n", error.what());
  return status;
}

} // namespace

int main(int count, char **arguments) {
  try {
    const Options options = parse_options(count, arguments);
    if (options.help) return std::fputs(usage, stdout), exit_passed;
    tell_case_of_fatal_signals();
    return run(options, {arguments, arguments + count});
  } catch (const UsageError &error) {
    std::fprintf(stderr, "%s", count < 2 ? usage : "");
    return complain(error, exit_usage);
  } catch (const sluice::tools::ToolError &error) {
    return complain(error, exit_usage);
  } catch (const std::exception &error) {
    return complain(error, exit_failed);
  }
}
