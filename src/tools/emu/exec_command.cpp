//===- exec_command.cpp - sluice-emu exec: a HIP program ------------------------------------------------===//
//
// The program runs unmodified, in a separate process that finds the emulator's libamdhip64 before any other.
// The results of its launches come back in a file, so that nothing is lost if it crashes.
//
//===----------------------------------------------------------------------------------------------------===//
#include "tools/emu/check_list.h"
#include "tools/emu/commands.h"
#include "tools/emu/counted.h"
#include "tools/emu/exec_report.h"
#include "tools/emu/exec_results.h"
#include "tools/shared/output_file.h"
#include "tools/shared/tool_error.h"

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
#include <list>
#include <optional>
#include <span>
#include <sys/wait.h>
#include <unistd.h>

namespace sluice::tools::emu {

namespace {

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
  const std::string rules =
      options.suppressions.empty() ? "" : std::filesystem::absolute(options.suppressions).string();
  for (const auto &[what, value] :
       {std::pair("the folder of temporary files", &report_file), std::pair("--suppressions", &rules),
        std::pair("--kernel", &options.kernel)})
    if (value->find(';') != std::string::npos)
      throw ToolError(fmt::format("{} may have no ';' in its name: {}", what, *value));
  std::string settings = fmt::format(
      "checks={};warnings={};tolerated={};count_bank_conflicts=off;completion={};wave_schedule={};workgroup_"
      "schedule={};stream_order={"
      "};"
      "perturb_transcendentals={};scramble_nans={};seed={};threads={};instruction_budget={};"
      "max_reports={};devices={};report_file={}",
      options.checks, options.warnings, options.strict ? "none" : "findings", options.completion,
      options.waves, options.workgroups, options.streams, options.perturb_transcendentals ? "on" : "off",
      options.scramble_nans ? "on" : "off", options.seed, options.threads.value_or(0), options.budget,
      options.max_reports, options.devices, report_file);
  settings += ";host_calls=on";
  if (options.fidelity) settings += ";fidelity=on";
  if (options.checks == "all") settings += checks_of_programs;
  if (!rules.empty()) settings += ";suppressions=" + rules;
  if (!options.kernel.empty()) settings += ";kernel=" + options.kernel;
  if (options.launch_skip != 0) settings += fmt::format(";launch_skip={}", options.launch_skip);
  if (options.launch_count) settings += fmt::format(";launch_count={}", *options.launch_count);
  return settings;
}

/// Nothing without --suppressions. Throws ToolError, with the file and the line.
std::optional<emulator::Suppressions> read_rules(const std::string &path) {
  if (path.empty()) return std::nullopt;
  std::ifstream file(path, std::ios::binary);
  if (!file) throw ToolError(fmt::format("--suppressions: {}: {}", path, std::strerror(errno)));
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  try {
    return emulator::Suppressions(text);
  } catch (const std::invalid_argument &error) {
    throw ToolError(fmt::format("--suppressions: {}: {}", path, error.what()));
  }
}

void print_unused(const ExecOptions &options, const emulator::Suppressions &rules,
                  const ExecResults &results) {
  for (const emulator::Suppressions::Rule &rule : rules.rules())
    if (!results.suppressed.contains(rule.line))
      fmt::print(stderr, "sluice-emu: {}:{}: suppressed nothing: {} {} {}\n", options.suppressions, rule.line,
                 rule.kernel, rule.kind, rule.place);
}

/// A filter that selects nothing is a mistake, not a clean run.
void require_checked_launches(const ExecOptions &options, const ExecResults &results) {
  if (results.unchecked == 0 || results.unchecked != results.launches) return;
  std::string names;
  for (const std::string &kernel : results.unchecked_kernels)
    names += (names.empty() ? "" : ", ") + kernel;
  const std::string launches = counted(results.launches, "launch", "launches");
  const bool named = options.kernel.empty() ||
                     std::ranges::any_of(results.unchecked_kernels, [&](const std::string &kernel) {
                       return emulator::matches_pattern(options.kernel, kernel);
                     });
  if (!named)
    throw ToolError(
        fmt::format("--kernel '{}' describes none of the {}, of: {}", options.kernel, launches, names));
  throw ToolError(fmt::format("--launch-skip {} leaves none of the {} to check, of: {}", options.launch_skip,
                              launches, names));
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

/// A file to be written at the end; its name is tried before the program runs.
struct WantedReport {
  WantedReport(const char *option, ExecFormat format, const std::string &path) : format(format) {
    if (path != "-") file.emplace(option, path);
  }
  void write(const ExecRun &run) {
    const std::string text = format(run);
    if (!file) {
      fmt::print("{}", text);
      return;
    }
    file->write({std::as_bytes(std::span(text))});
    file->publish();
  }

  ExecFormat format;
  std::optional<OutputFile> file;
};

/// In a list, because files cannot be moved.
std::list<WantedReport> wanted_reports(const ExecOptions &options) {
  std::list<WantedReport> wanted;
  size_t on_stdout = 0;
  const auto add = [&](const char *option, ExecFormat format, const std::string &path) {
    on_stdout += path == "-";
    WantedReport &fresh = wanted.emplace_back(option, format, path);
    for (const WantedReport &other : wanted)
      if (&other != &fresh && other.file && fresh.file) OutputFile::refuse_same(*other.file, *fresh.file);
  };
  if (!options.json.empty()) add("--json", exec_json, options.json);
  for (const std::string &report : options.reports) {
    const auto [format, path] = parse_report_option(report);
    add("--report", format, path);
  }
  if (on_stdout > 1) throw ToolError("--json and --report: only one of them can be written to stdout");
  return wanted;
}

} // namespace

int exec_command(const ExecOptions &options) {
  const std::string folder = library_folder();
  const std::optional<emulator::Suppressions> rules = read_rules(options.suppressions);
  const ReportFile report_file;
  set_variable("SLUICE_EMULATOR_SETTINGS", settings_of(options, report_file.name()));
  const char *const others = std::getenv("LD_LIBRARY_PATH");
  set_variable("LD_LIBRARY_PATH", others != nullptr && *others != '\0' ? folder + ":" + others : folder);
  std::list<WantedReport> reports = wanted_reports(options);

  const int status = run_program(options.program);
  const ExecResults results = read_results(report_file.name());
  const ExecRun run{options, status, results};
  if (options.json.empty()) fmt::print(stderr, "{}", exec_text(run));
  for (WantedReport &report : reports)
    report.write(run);
  if (options.unused_suppressions) print_unused(options, *rules, results);
  require_checked_launches(options, results);
  return status == 0 && results.failed() ? options.error_exitcode : status;
}

} // namespace sluice::tools::emu
