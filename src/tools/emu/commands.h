//===- commands.h - the commands of sluice-emu ----------------------------------------------------------===//
//
// Each writes its result to stdout and returns the exit status: 0, or 1 if the machine reported an error. If
// it cannot do its work it throws an exception, which main reports on stderr with status 2.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "package/chips.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace sluice::tools::emu {

/// How the machine runs and what it checks, for `run` and `exec`. Texts are as the user wrote them; the
/// command reports errors in them.
struct MachineOptions {
  std::string checks = "all";
  std::string warnings = "default";
  std::string completion = "late";
  std::string waves = "greedy";
  std::string workgroups = "ascending";
  bool perturb_transcendentals = false;
  bool scramble_nans = false;
  uint64_t seed = 1;
  std::optional<uint32_t> threads;
  /// 0: none. No sensible kernel reaches the default, and a kernel that never ends reaches it in a minute or
  /// two.
  uint64_t budget = uint64_t(1) << 30;
  uint32_t max_reports = 32;
  bool fidelity = false;
};

struct RunOptions : MachineOptions {
  std::string code_file;
  std::string kernel;
  std::string grid = "1";
  std::string block = "64";
  uint32_t lds_bytes = 0;
  std::vector<std::string> arguments;
  std::string kernarg_file; // empty: not given
  std::vector<std::string> placed_arguments;
  std::vector<std::string> outputs;

  bool no_preload = false;
  bool stop_at_report = false;

  std::string trace; // empty: no trace; "-": on stdout; else a file
  std::optional<std::string> trace_workgroup;
  std::optional<uint32_t> trace_wave;
  uint32_t trace_lanes = 4;

  bool timing = false; // instead of running all of it
  bool timing_listing = false;
  uint32_t timing_compute_units = 1;
  uint32_t timing_workgroups = 0;
  uint32_t timing_xcds = 0; // as many as represent the launch
  uint32_t compute_unit_stride = 1;
  std::string timing_timeline; // file; "-" is the terminal
  std::optional<uint64_t> timing_iteration;
  std::string timing_window;
  std::string timing_roofline; // file
  uint32_t clock_mhz = 2100;
  bool clock_curve = false; // instead of it
  uint32_t device_compute_units = package::find_chip("gfx942")->compute_units;

  bool json = false;
};
int run_command(RunOptions options);

/// How a program's launches run; texts are those of sluice_emulator_configure.
struct ExecOptions : MachineOptions {
  std::vector<std::string> program; // with its arguments

  std::string streams = "concurrent";
  uint32_t devices = 1;
  bool strict = false; // races and values never written fail their launch

  std::string json;                 // empty: none; "-": to stdout; else a file
  std::vector<std::string> reports; // FORMAT:FILE
  int error_exitcode = 1;
  std::string suppressions;         // file; empty: none
  bool unused_suppressions = false; // lists rules that have suppressed nothing
  std::string kernel;               // pattern; empty: all
  uint64_t launch_skip = 0;
  std::optional<uint64_t> launch_count; // none: all
};
/// Returns the program's status (128 plus the signal that ended it), or `error_exitcode` if that is 0 and
/// there are errors.
int exec_command(const ExecOptions &options);

struct DisasmOptions {
  std::string code_file;
  std::string kernel; // empty: all code
};
int disasm_command(const DisasmOptions &options);

struct CheckOptions {
  std::string code_file;
  std::string fail_on = "required"; // hazards of this level or more serious ones make the status 1
  bool json = false;
  bool nops = false; // also s_nop instructions with more wait states than the code needs
};
int check_command(const CheckOptions &options);

struct ListOptions {
  std::string code_file;
  bool json = false;
};
int list_command(const ListOptions &options);

} // namespace sluice::tools::emu
