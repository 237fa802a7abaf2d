//===- exec_command.cpp - sluice-emu exec: a HIP program ------------------------------------------------===//
//
// The program runs unmodified, in a separate process that finds the emulator's libamdhip64 before any other.
// The results of its launches come back in a file, so that nothing is lost if it crashes.
//
//===----------------------------------------------------------------------------------------------------===//
#include "tools/emu/check_list.h"
#include "tools/emu/commands.h"
#include "tools/emu/counted.h"
#include "tools/output_file.h"
#include "tools/tool_error.h"

#include "emulator/machine/machine.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string_view>
#include <sys/wait.h>
#include <unistd.h>

namespace sluice::tools::emu {

namespace {

using nlohmann::ordered_json;

/// Deleted in the destructor.
class ReportFile {
public:
  ReportFile() : path((std::filesystem::temp_directory_path() / "sluice-emu-XXXXXX").string()) {
    const int descriptor = mkstemp(path.data());
    if (descriptor < 0) throw ToolError(fmt::format("{}: {}", path, std::strerror(errno)));
    close(descriptor);
  }
  ~ReportFile() { unlink(path.c_str()); }
  ReportFile(const ReportFile &) = delete;
  ReportFile &operator=(const ReportFile &) = delete;

  const std::string &name() const { return path; }

private:
  std::string path;
};

/// Relative to this program's own folder, both in the build tree and when installed.
std::string library_folder() {
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe");
  std::filesystem::path folder;
  for (const char *libraries : {SLUICE_LIBRARY_FOLDERS}) {
    folder = (self.parent_path() / libraries / "sluice-hip").lexically_normal();
    if (std::filesystem::exists(folder / "libamdhip64.so.7")) return folder.string();
  }
  throw ToolError(
      fmt::format("{} has no libamdhip64.so.7: the emulator's HIP libraries are not there", folder.string()));
}

// Checks of a whole program, which no launch needs. They give notes, also if --warn is a list without them.
constexpr const char *checks_of_programs = ";leaks=report;ignored_errors=report;unwritten_copies=report";

std::string settings_of(const ExecOptions &options, const std::string &report_file) {
  // Refuses, with the option's name, everything that the program's emulator would refuse.
  read_checks("--check", options.checks, emulator::parse_checks);
  read_checks("--warn", options.warnings, emulator::parse_warnings);
  if (report_file.find(';') != std::string::npos)
    throw ToolError(
        fmt::format("the folder of temporary files may have no ';' in its name: {}", report_file));
  return fmt::format(
      "checks={};warnings={};count_bank_conflicts=off;completion={};wave_schedule={};workgroup_schedule={};"
      "stream_order={};"
      "perturb_transcendentals={};scramble_nans={};seed={};threads={};instruction_budget={};"
      "max_reports={};devices={};report_file={}{}",
      options.checks, options.warnings, options.completion, options.waves, options.workgroups,
      options.streams, options.perturb_transcendentals ? "on" : "off", options.scramble_nans ? "on" : "off",
      options.seed, options.threads, options.budget, options.max_reports, options.devices, report_file,
      options.checks == "all" ? checks_of_programs : "");
}

void set_variable(const char *name, const std::string &value) {
  if (setenv(name, value.c_str(), 1) != 0) throw ToolError(fmt::format("{}: {}", name, std::strerror(errno)));
}

/// Runs it to its end; returns its status as a shell would.
int run_program(const std::vector<std::string> &program) {
  std::vector<char *> arguments;
  for (const std::string &argument : program)
    arguments.push_back(const_cast<char *>(argument.c_str()));
  arguments.push_back(nullptr);

  // The child reports here if the program could not be started; closed without data if it was.
  std::array<int, 2> pipe_ends;
  if (pipe2(pipe_ends.data(), O_CLOEXEC) != 0) throw ToolError(fmt::format("pipe: {}", std::strerror(errno)));
  const pid_t child = fork();
  if (child < 0) throw ToolError(fmt::format("fork: {}", std::strerror(errno)));
  if (child == 0) {
    execvp(arguments[0], arguments.data());
    const int error = errno;
    const ssize_t written = write(pipe_ends[1], &error, sizeof error);
    _exit(written == sizeof error ? 127 : 126);
  }
  close(pipe_ends[1]);
  // An interrupt key ends the program; its reports must still be printed.
  std::signal(SIGINT, SIG_IGN);
  int error = 0;
  const bool refused = read(pipe_ends[0], &error, sizeof error) == sizeof error;
  close(pipe_ends[0]);
  int status = 0;
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR) throw ToolError(fmt::format("waitpid: {}", std::strerror(errno)));
  std::signal(SIGINT, SIG_DFL);
  if (refused) throw ToolError(fmt::format("{}: {}", program[0], std::strerror(error)));
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

struct Results {
  uint64_t launches = 0;
  ordered_json counters = {
      {"workgroups", 0}, {"waves", 0}, {"wave_instructions", 0}, {"mfma_instructions", 0}};
  ordered_json reports = ordered_json::array();
  uint64_t reports_dropped = 0;
  std::string text;

  size_t count(std::string_view severity) const {
    return size_t(std::ranges::count_if(
        reports, [&](const ordered_json &report) { return report.at("severity") == severity; }));
  }
  bool clean() const { return count("note") == reports.size(); }
  bool failed() const { return count("error") != 0; }
};

Results read_results(const std::string &path) {
  Results results;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) { // of a launch, or of a report that belongs to no launch
    const ordered_json launch = ordered_json::parse(line, nullptr, false);
    if (launch.is_discarded()) throw ToolError("the program's reports are cut short: is the disk full?");
    results.launches += launch.at("counters").at("launches").get<uint64_t>();
    for (auto &[name, sum] : results.counters.items())
      sum = sum.get<uint64_t>() + launch.at("counters").at(name).get<uint64_t>();
    for (const ordered_json &report : launch.at("reports"))
      results.reports.push_back(report);
    results.reports_dropped += launch.at("reports_dropped").get<uint64_t>();
    results.text += launch.at("text").get<std::string>();
  }
  return results;
}

void print_text(const Results &results) {
  const auto count = [&](const char *counter, const char *what) {
    return counted(results.counters.at(counter).get<uint64_t>(), what);
  };
  fmt::print(stderr, "{}", results.text);
  fmt::print(stderr, "sluice-emu: {}, {}, {}, {}, {}; ",
             results.launches == 1 ? "1 launch" : fmt::format("{} launches", results.launches),
             count("workgroups", "workgroup"), count("waves", "wave"),
             count("wave_instructions", "instruction"), count("mfma_instructions", "MFMA"));
  const size_t notes = results.count("note");
  const std::string noted = notes == 0 ? "" : fmt::format(", {}", counted(notes, "note"));
  if (results.clean())
    fmt::print(stderr, "nothing to report{}\n", noted);
  else
    fmt::print(
        stderr, "{}{}{}\n", reports_text(results.reports.size() - notes, results.count("warning")), noted,
        results.reports_dropped == 0 ? ""
                                     : fmt::format("; --max-reports leaves out others, which occurred {}",
                                                   counted(results.reports_dropped, "time")));
}

std::string json_of(const ExecOptions &options, int status, const Results &results) {
  const ordered_json json = {
      {"program", options.program},   {"status", status},
      {"launches", results.launches}, {"clean", results.clean()},
      {"failed", results.failed()},   {"counters", results.counters},
      {"reports", results.reports},   {"reports_dropped", results.reports_dropped},
  };
  return json.dump(2) + "\n";
}

} // namespace

int exec_command(const ExecOptions &options) {
  const std::string folder = library_folder();
  const ReportFile report_file;
  set_variable("SLUICE_EMULATOR_SETTINGS", settings_of(options, report_file.name()));
  const char *const others = std::getenv("LD_LIBRARY_PATH");
  set_variable("LD_LIBRARY_PATH", others != nullptr && *others != '\0' ? folder + ":" + others : folder);
  std::unique_ptr<OutputFile> json_file;
  if (!options.json.empty() && options.json != "-")
    json_file = std::make_unique<OutputFile>("--json", options.json);

  const int status = run_program(options.program);
  const Results results = read_results(report_file.name());
  if (options.json.empty()) {
    print_text(results);
  } else if (json_file) {
    const std::string text = json_of(options, status, results);
    json_file->write({std::as_bytes(std::span(text))});
    json_file->publish();
  } else {
    fmt::print("{}", json_of(options, status, results));
  }
  return status == 0 && results.failed() ? 1 : status;
}

} // namespace sluice::tools::emu
