//===- main.cpp - the command line of the emulator ------------------------------------------------------===//
//
// Declares the options and dispatches. Exit status: 0, 1 if the machine reported an error, 2 if the command
// failed.
//
//===----------------------------------------------------------------------------------------------------===//
#include "tools/emu/commands.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <fmt/format.h>
#include <limits>
#include <memory>

namespace {

using namespace sluice::tools::emu;

constexpr const char *argument_help =
    R"(Values of --arg, in the order of the kernel's parameters, and of --arg-at:
  buf:FILE.npy             device memory with the elements of a .npy file
  size:BYTES[:fill=F][:type=T]
                           device memory; F is undefined (default: reading before a write is reported),
                           a byte, random or random(SEED); T is the type of the elements for --out and
                           random (default u8): bool, i8 to i64, u8 to u64, f16, bf16, f32, f64, e4m3fnuz,
                           e5m2fnuz, e4m3fn, e5m2; bf16 is written as u16, those of 8 bits as u8
  i8: u8: i16: u16: i32: u32: i64: u64:
                           a whole number, decimal or after 0x hexadecimal
  f16: bf16: f32: f64:     a floating-point number
  raw:HEX                  bytes, lowest address first, for arguments that are structs
  ptr:I[+OFFSET]           an address in the memory of argument I, counted from 0
Sizes of --arg must be those of the kernel's metadata. Without metadata they follow one another, aligned to
the largest power of two up to 16 that divides their size. With --arg-at the argument I of ptr: and --out is the one
that begins at byte I. Hidden arguments are filled in.

Exit status: 0: the kernel ran without reports or with warnings only; 1: errors were reported; 2: the command
failed.)";

constexpr const char *exec_help =
    R"(The program and its arguments follow the options. The program finds the emulator's libamdhip64.so.5, .so.6 and
.so.7 through LD_LIBRARY_PATH; one that names another library by an absolute path or by DT_RPATH does not. Reports go to
stderr when the program has ended.

Faults (accesses that memory refuses, traps, deadlocks and others after which a wave cannot go on) fail their launch, as on a
GPU. Races and values never written are errors after which the program goes on with its results, unless --strict is given.

Exit status: that of the program (128 plus the signal, if a signal ended it); that of --error-exitcode if that is 0 and
errors were reported; 2 if the command failed.)";

/// CLI11 writes a flag with an optional value as "--trace{-}".
class Formatter : public CLI::Formatter {
public:
  std::string make_option_name(const CLI::Option *option, bool is_positional) const override {
    std::string name = CLI::Formatter::make_option_name(option, is_positional);
    const size_t brace = name.find('{');
    return brace == std::string::npos ? name : name.substr(0, brace) + "[=FILE]";
  }
};

CLI::Option *add_file(CLI::App *command, const char *name, std::string &file, const char *help) {
  return command->add_option(name, file, help)->check([](const std::string &value) {
    return value.empty() ? "is empty; it must be the name of a file" : "";
  });
}

CLI::Option *add_list(CLI::App *command, const char *name, std::vector<std::string> &values,
                      const char *help) {
  return command->add_option(name, values, help)->allow_extra_args(false);
}

void add_code_file(CLI::App *command, std::string &file) {
  add_file(command, "code", file, "a gfx942 code object: an ELF, or an offload bundle with one")->required();
}

/// How the machine runs and what it checks.
void add_machine(CLI::App *command, MachineOptions &machine) {
  command->add_option("--check", machine.checks, "all (default), none, or a list such as pending,lds_races");
  command->add_option("--warn", machine.warnings,
                      "checks whose reports are warnings, not errors: default, all, none or a list");
  command->add_option("--completion", machine.completion,
                      "when loads complete: late (default; when a wait forces them), early or random");
  command->add_option("--waves", machine.waves,
                      "which wave of a workgroup runs next: greedy (default), round_robin or random");
  command->add_option(
      "--workgroups", machine.workgroups,
      "the order in which workgroups start: ascending (default), descending, by_xcd or random");
  command->add_flag("--perturb-transcendentals", machine.perturb_transcendentals,
                    "v_exp, v_rcp and similar instructions are randomly off by one unit in the last place");
  command->add_flag("--scramble-nans", machine.scramble_nans, "new NaNs get random payloads");
  command->add_option("--seed", machine.seed, "seed of all random choices (default 1)");
  command->add_option("--threads", machine.threads, "host threads (default: one per processor)")
      ->check(CLI::Range(1, 1024));
  command->add_option("--budget", machine.budget,
                      "instructions after which a wave is stopped (default 2^30; 0: never)");
  command
      ->add_option("--max-reports", machine.max_reports,
                   "places of a launch kept for each kind of report, and for each hazard rule (default 32)")
      ->check(CLI::Range(1, 1 << 20));
  command->add_flag(
      "--fidelity", machine.fidelity,
      "also say what a GPU may do differently: approximated instructions with their bounds, "
      "parts of the device that are not modelled, and the addresses and branches that depend on "
      "approximated values; slower");
}

void add_trace(CLI::App *command, RunOptions &run) {
  CLI::Option *const trace = command->add_flag(
      "--trace{-}", run.trace, "write each instruction as it is executed, to stdout or a file");
  command->add_option("--trace-workgroup", run.trace_workgroup, "trace only this workgroup: X, X,Y or X,Y,Z")
      ->needs(trace);
  command->add_option("--trace-wave", run.trace_wave, "trace only this wave of a workgroup")->needs(trace);
  command
      ->add_option("--trace-lanes", run.trace_lanes, "number of lanes shown of vector registers (default 4)")
      ->check(CLI::Range(0, 64))
      ->needs(trace);
}

/// The chip of the timing model.
void add_timed_chip(CLI::App *command, RunOptions &run, CLI::Option *timing) {
  CLI::Option *const clock =
      command
          ->add_option("--clock-mhz", run.clock_mhz,
                       "the engine's clock (default 2100, the peak); memory beyond L2 does not follow it")
          ->check(CLI::Range(1, 10000))
          ->needs(timing);
  command
      ->add_flag("--clock-curve", run.clock_curve,
                 "use the clock that published counters show for equally busy matrix cores, in place of "
                 "--clock-mhz")
      ->needs(timing)
      ->excludes(clock);
  command
      ->add_option("--device-compute-units", run.device_compute_units,
                   "number of compute units of the device, on eight XCDs (default 304)")
      ->check(CLI::Range(8u, run.device_compute_units))
      ->needs(timing);
}

void add_timing_pictures(CLI::App *command, RunOptions &run, CLI::Option *timing) {
  CLI::Option *const timeline =
      command
          ->add_option("--timing-timeline", run.timing_timeline,
                       "show what all waves of a compute unit do in an iteration of the busiest loop: an SVG "
                       "file, or - for the terminal")
          ->needs(timing);
  CLI::Option *const iteration =
      command
          ->add_option("--timing-iteration", run.timing_iteration,
                       "number of the iteration, from 0 (default: one as long as the median)")
          ->needs(timeline);
  command
      ->add_option("--timing-window", run.timing_window,
                   "BEGIN,END: show these clk of the launch in place of an iteration")
      ->needs(timeline)
      ->excludes(iteration);
  command
      ->add_option("--timing-roofline", run.timing_roofline,
                   "an SVG file: the matrix FLOPS of the launch below the limits of the device")
      ->needs(timing);
}

void add_timing(CLI::App *command, RunOptions &run) {
  CLI::Option *const timing = command->add_flag(
      "--timing", run.timing,
      "estimate how long the launch takes on the chip; runs some of its workgroups, unchecked");
  // Options that have no meaning here.
  for (const char *other : {"--out", "--check", "--warn", "--completion", "--waves", "--workgroups",
                            "--threads", "--trace", "--perturb-transcendentals", "--scramble-nans",
                            "--no-preload", "--seed", "--max-reports", "--stop-at-report", "--fidelity"})
    timing->excludes(command->get_option(other));
  command
      ->add_flag("--timing-listing", run.timing_listing,
                 "show where in the program waves lose time; with --json, for all instructions")
      ->needs(timing);
  command
      ->add_option("--timing-compute-units", run.timing_compute_units,
                   "number of compute units simulated together, sharing what they read (default 1)")
      ->check(CLI::Range(1, 38))
      ->needs(timing);
  command
      ->add_option("--timing-workgroups", run.timing_workgroups,
                   "largest number of workgroups simulated per compute unit (default: as many as it gets)")
      ->check(CLI::Range(1, 1 << 30))
      ->needs(timing);
  command
      ->add_option("--timing-xcds", run.timing_xcds,
                   "number of XCDs to simulate, each with --timing-compute-units (default: as many as "
                   "represent the launch)")
      ->check(CLI::Range(1, 8))
      ->needs(timing);
  command
      ->add_option("--compute-unit-stride", run.compute_unit_stride,
                   "simulate every Nth compute unit of an XCD (default 1): choose a stride that "
                   "keeps together workgroups that read the same data")
      ->check(CLI::Range(1, 38))
      ->needs(timing);
  add_timed_chip(command, run, timing);
  add_timing_pictures(command, run, timing);
}

CLI::App *add_run(CLI::App &app, RunOptions &run) {
  CLI::App *command = app.add_subcommand("run", "launch a kernel, and report its errors");
  command->footer(argument_help);
  add_code_file(command, run.code_file);
  command->add_option("--kernel", run.kernel, "the name of the kernel")->required();
  command->add_option("--grid", run.grid, "workgroups: X, X,Y or X,Y,Z (default 1)");
  command->add_option("--block", run.block, "work-items of a workgroup: X, X,Y or X,Y,Z (default 64)");
  command->add_option("--lds-bytes", run.lds_bytes, "LDS beyond what the kernel declares (default 0)");
  CLI::Option *const arguments =
      add_list(command, "--arg", run.arguments, "the next argument of the kernel: KIND:VALUE, see below");
  add_file(command, "--kernarg-file", run.kernarg_file, "the bytes of all arguments, instead of --arg")
      ->excludes(arguments);
  add_list(command, "--arg-at", run.placed_arguments,
           "OFFSET=KIND:VALUE: the value that begins at this byte of the arguments, instead of --arg; all "
           "other bytes are those of --kernarg-file, or 0")
      ->excludes(arguments);
  add_list(command, "--out", run.outputs,
           "I=FILE: afterwards write the memory of argument I as .npy, even if there are reports");

  add_machine(command, run);
  command->get_option("--seed")->description("seed of all random choices except fill (default 1)");
  command->get_option("--threads")
      ->description("host threads (default: one per processor; one with --trace)");
  command->add_flag("--no-preload", run.no_preload,
                    "enter kernels that preload arguments at their prologue, as old firmware does");
  command->add_flag("--stop-at-report", run.stop_at_report, "end the launch at the first error");
  add_trace(command, run);
  add_timing(command, run);
  command->add_flag("--json", run.json,
                    "print reports, counters and outputs as JSON; with --timing, the timing");
  return command;
}

CLI::App *add_exec(CLI::App &app, ExecOptions &exec) {
  const auto choice = [](std::vector<std::string> names) { return CLI::IsMember(std::move(names)); };
  CLI::App *command = app.add_subcommand(
      "exec", "run an unmodified HIP program on the emulator, and report errors in its kernels");
  command->footer(exec_help);
  command->prefix_command();
  add_machine(command, exec);
  command->get_option("--completion")->check(choice({"late", "early", "random"}));
  command->get_option("--waves")->check(choice({"greedy", "round_robin", "random"}));
  command->get_option("--workgroups")->check(choice({"ascending", "descending", "by_xcd", "random"}));
  command->add_flag("--strict", exec.strict,
                    "races and values never written fail their launch, as faults do; without it they are "
                    "reported, and the program goes on with its results");
  command
      ->add_option(
          "--error-exitcode", exec.error_exitcode,
          "exit status if the program's own is 0 and errors were reported (default 1; 0: the program's)")
      ->check(CLI::Range(0, 255));
  command
      ->add_option("--streams", exec.streams,
                   "concurrent (default), or the seed of an order drawn from those that HIP allows")
      ->check([](const std::string &value) {
        const bool number =
            !value.empty() && value.find_first_not_of("0123456789") == std::string::npos && value.size() < 20;
        return value == "concurrent" || number ? "" : "is neither 'concurrent' nor a number";
      });
  command->add_option("--devices", exec.devices, "number of devices that the program finds (default 1)")
      ->check(CLI::Range(1, 8));
  command->add_flag(
      "--json{-}", exec.json,
      "write reports and counters as JSON at the end, to stdout or a file, in place of the text on "
      "stderr");
  CLI::Option *const suppressions = add_file(command, "--suppressions", exec.suppressions,
                                             "a file of rules for reports to leave out: KERNEL KIND PLACE, "
                                             "one rule a line, with the patterns * and ?; # "
                                             "begins a comment");
  command
      ->add_flag("--unused-suppressions", exec.unused_suppressions,
                 "list the rules that have suppressed nothing, on stderr")
      ->needs(suppressions);
  command->add_option(
      "--kernel", exec.kernel,
      "check only launches of kernels whose names this pattern (* and ?) describes; others run "
      "unchecked");
  command->add_option(
      "--launch-skip", exec.launch_skip,
      "number of launches, of those, that run unchecked before the first that is checked (default 0)");
  command
      ->add_option("--launch-count", exec.launch_count,
                   "number of launches that are checked; later ones run unchecked (default: all)")
      ->check(CLI::Range(uint64_t(1), std::numeric_limits<uint64_t>::max()));
  add_list(
      command, "--report", exec.reports,
      "FORMAT:FILE: also write the reports at the end; FORMAT is text, json, junit or sarif, and FILE may "
      "be - for stdout");
  return command;
}

} // namespace

int main(int count, char **arguments) {
  CLI::App app("Runs gfx942 machine code on the emulator, without a GPU or HIP", "sluice-emu");
  app.formatter(std::make_shared<Formatter>());
  app.require_subcommand(1);
  int status = 0;

  RunOptions run;
  add_run(app, run)->callback([&] { status = run_command(run); });

  ExecOptions exec;
  CLI::App *command = add_exec(app, exec);
  command->callback([&, command] {
    exec.program = command->remaining();
    if (exec.program.empty()) throw CLI::RequiredError("a program");
    status = exec_command(exec);
  });

  DisasmOptions disasm;
  command =
      app.add_subcommand("disasm", "print machine code as text, and mark what the machine refuses to run");
  add_code_file(command, disasm.code_file);
  command->add_option("--kernel", disasm.kernel, "only this kernel");
  command->callback([&] { status = disasm_command(disasm); });

  CheckOptions check;
  command = app.add_subcommand("check",
                               "report wait states that are missing on some path, without running anything");
  add_code_file(command, check.code_file);
  command
      ->add_option(
          "--fail-on", check.fail_on,
          "exit with 1 for reports of this level and above: required (default), compiler, by_count (all "
          "that are shown by default), waived (also shows waived reports)")
      ->check(CLI::IsMember({"required", "compiler", "by_count", "waived"}));
  CLI::Option *const json = command->add_flag("--json", check.json, "print the reports as JSON");
  command
      ->add_flag("--nops", check.nops,
                 "also report s_nop instructions with more wait states than any path needs")
      ->excludes(json);
  command->callback([&] { status = check_command(check); });

  ListOptions list;
  command = app.add_subcommand("list", "list the kernels of a code object: registers, LDS, arguments");
  add_code_file(command, list.code_file);
  command->add_flag("--json", list.json, "print JSON");
  command->callback([&] { status = list_command(list); });

  try {
    app.parse(count, arguments);
  } catch (const CLI::ParseError &error) {
    return app.exit(error) == 0 ? 0 : 2;
  } catch (const std::exception &error) {
    std::fflush(stdout);
    fmt::print(stderr, "sluice-emu: {}\n", error.what());
    return 2;
  }
  return std::fflush(stdout) == 0 ? status : 2;
}
