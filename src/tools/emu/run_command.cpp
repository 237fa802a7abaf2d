//===- run_command.cpp - sluice-emu run: one launch -----------------------------------------------------===//

#include "tools/emu/check_list.h"
#include "tools/emu/code_file.h"
#include "tools/emu/commands.h"
#include "tools/emu/counted.h"
#include "tools/emu/kernel_arguments.h"
#include "tools/emu/time_command.h"
#include "tools/emu/trace_writer.h"
#include "tools/shared/output_file.h"
#include "tools/shared/progress.h"
#include "tools/shared/tool_error.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <fmt/format.h>
#include <future>
#include <initializer_list>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <unistd.h>
#include <utility>

namespace sluice::tools::emu {

namespace {

using nlohmann::ordered_json;
using Extents = std::array<uint32_t, 3>;

constexpr uint64_t most_block_items = 1024;
constexpr uint64_t most_lds_bytes = 64 << 10;
constexpr uint64_t most_u32 = std::numeric_limits<uint32_t>::max();

//===--- Options ----------------------------------------------------------------------------------------===//

/// "X", "X,Y" or "X,Y,Z"; missing extents are `rest`.
Extents parse_extents(const std::string &option, const std::string &text, uint32_t least, uint32_t rest) {
  Extents extents{rest, rest, rest};
  std::string_view left = text;
  for (size_t axis = 0;; ++axis) {
    const size_t comma = std::min(left.find(','), left.size());
    uint64_t value = 0;
    try {
      if (axis == 3) throw ToolError("has more than three numbers");
      value = parse_unsigned(left.substr(0, comma));
    } catch (const ToolError &error) {
      throw ToolError(fmt::format("{} is '{}': {}; it must be X, X,Y or X,Y,Z", option, text, error.what()));
    }
    if (value < least || value > most_u32)
      throw ToolError(fmt::format("{} is '{}': its {} is not within {} and {}", option, text, "xyz"[axis],
                                  least, most_u32));
    extents[axis] = uint32_t(value);
    if (comma == left.size()) return extents;
    left.remove_prefix(comma + 1);
  }
}

uint64_t product(const Extents &extents) {
  uint64_t result = 1;
  for (uint32_t extent : extents)
    if (__builtin_mul_overflow(result, uint64_t(extent), &result))
      return std::numeric_limits<uint64_t>::max();
  return result;
}

/// Refuses what a driver would, and what does not fit the dispatch packet.
void check_shape(const RunOptions &options, const package::Kernel &kernel, const Extents &grid,
                 const Extents &block) {
  const uint64_t items = product(block);
  const uint64_t most_items = std::min<uint64_t>(most_block_items, kernel.max_workgroup_size);
  if (items > most_items)
    throw ToolError(fmt::format("--block is '{}': {} work-items; {} are the most{}", options.block, items,
                                most_items,
                                most_items < most_block_items ? " that the kernel was built for" : ""));
  for (size_t axis = 0; axis < 3; ++axis)
    if (uint64_t(grid[axis]) * block[axis] > most_u32)
      throw ToolError(
          fmt::format("--grid is '{}': {} workgroups of {} work-items in {}; {} work-items are the most",
                      options.grid, grid[axis], block[axis], "xyz"[axis], most_u32));
  if (product(grid) > most_u32)
    throw ToolError(
        fmt::format("--grid is '{}': more than {} workgroups, which are the most", options.grid, most_u32));
  if (uint64_t(kernel.lds_bytes) + options.lds_bytes > most_lds_bytes)
    throw ToolError(
        fmt::format("--lds-bytes is {}: with the kernel's own {} that is more than the {} there are",
                    options.lds_bytes, kernel.lds_bytes, most_lds_bytes));
}

template <typename T> using Choices = std::initializer_list<std::pair<std::string_view, T>>;

template <typename T> T choose(const std::string &option, const std::string &text, Choices<T> choices) {
  std::string names;
  for (const auto &[name, value] : choices) {
    if (name == text) return value;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", name);
  }
  throw ToolError(fmt::format("{} is '{}'; it must be one of {}", option, text, names));
}

emulator::Options machine_options(const RunOptions &options) {
  using emulator::CompletionOrder;
  using emulator::WaveSchedule;
  using emulator::WorkgroupSchedule;
  emulator::Options machine;
  machine.checks = read_checks("--check", options.checks, emulator::parse_checks);
  machine.warnings = read_checks("--warn", options.warnings, emulator::parse_warnings);
  machine.completion = choose<CompletionOrder>("--completion", options.completion,
                                               {{"late", CompletionOrder::late},
                                                {"early", CompletionOrder::early},
                                                {"random", CompletionOrder::random}});
  machine.wave_schedule = choose<WaveSchedule>("--waves", options.waves,
                                               {{"greedy", WaveSchedule::greedy},
                                                {"round_robin", WaveSchedule::round_robin},
                                                {"random", WaveSchedule::random}});
  machine.workgroup_schedule = choose<WorkgroupSchedule>("--workgroups", options.workgroups,
                                                         {{"ascending", WorkgroupSchedule::ascending},
                                                          {"descending", WorkgroupSchedule::descending},
                                                          {"by_xcd", WorkgroupSchedule::by_xcd},
                                                          {"random", WorkgroupSchedule::random}});
  machine.perturb_transcendentals = options.perturb_transcendentals;
  machine.scramble_nans = options.scramble_nans;
  machine.preload_kernargs = !options.no_preload;
  machine.seed = options.seed;
  machine.instruction_budget = options.budget;
  machine.max_reports = options.max_reports;
  machine.stop_at_report = options.stop_at_report;
  if (options.fidelity) machine.fidelity = std::make_shared<emulator::InexactMemory>();
  // By default one thread writes a trace, with its workgroups in order.
  machine.threads = options.threads.value_or(options.trace.empty() ? 0 : 1);
  return machine;
}

std::unique_ptr<TraceWriter> make_trace(const RunOptions &options, const Extents &grid,
                                        const Extents &block) {
  if (options.trace.empty()) return nullptr;
  if (options.trace == "-" && options.json)
    throw ToolError("--trace and --json would both write to stdout; --trace=FILE writes to a file");
  TraceWriter::Selection selection;
  if (options.trace_workgroup) {
    selection.workgroup = parse_extents("--trace-workgroup", *options.trace_workgroup, 0, 0);
    for (size_t axis = 0; axis < 3; ++axis)
      if ((*selection.workgroup)[axis] >= grid[axis])
        throw ToolError(fmt::format("--trace-workgroup is '{}'; the grid has {} in {}",
                                    *options.trace_workgroup, grid[axis], "xyz"[axis]));
  }
  const uint64_t waves = (product(block) + 63) / 64;
  if (options.trace_wave && *options.trace_wave >= waves)
    throw ToolError(fmt::format("--trace-wave is {}; a workgroup has {} waves", *options.trace_wave, waves));
  selection.wave = options.trace_wave;
  return std::make_unique<TraceWriter>(options.trace, selection, options.trace_lanes);
}

//===--- Outputs ----------------------------------------------------------------------------------------===//

struct Output {
  uint64_t argument; // its number
  std::string path;
  std::unique_ptr<OutputFile> file;
  NpyArray array; // after the run
};

std::vector<Output> parse_outputs(const RunOptions &options, const KernelArguments &arguments) {
  std::vector<Output> outputs;
  for (const std::string &text : options.outputs) {
    const std::string option = "--out " + text;
    const size_t equals = text.find('=');
    if (equals == std::string::npos)
      throw ToolError(fmt::format(
          "{}: it must be I=FILE, with I the number of an argument, counted from 0, or after --arg-at "
          "the byte at which it begins",
          option));
    Output output;
    try {
      output.argument = parse_unsigned(std::string_view(text).substr(0, equals));
    } catch (const ToolError &error) {
      throw ToolError(fmt::format("{}: {}", option, error.what()));
    }
    arguments.expect_buffer(output.argument, option);
    output.path = text.substr(equals + 1);
    output.file = std::make_unique<OutputFile>(fmt::format("--out {}", output.argument), output.path);
    for (const Output &other : outputs)
      OutputFile::refuse_same(*other.file, *output.file);
    outputs.push_back(std::move(output));
  }
  return outputs;
}

//===--- Launch -----------------------------------------------------------------------------------------===//

struct Run {
  emulator::LaunchResult result;
  double seconds = 0;
  bool bank_conflicts_counted = false;
};

Run launch(const emulator::Program &program, const RunOptions &options, const Extents &grid,
           const Extents &block, std::span<const std::byte> kernarg, const emulator::Memory &memory,
           emulator::Options machine) {
  std::atomic<uint64_t> ended = 0;
  machine.workgroups_ended = &ended;
  const auto begin = std::chrono::steady_clock::now();
  auto done = std::async(std::launch::async, [&] {
    return emulator::launch(program, options.kernel, grid, block, options.lds_bytes, kernarg, memory,
                            machine);
  });
  if (isatty(STDERR_FILENO) == 1) {
    Progress progress(options.kernel);
    while (done.wait_for(std::chrono::milliseconds(100)) != std::future_status::ready)
      progress.update(double(ended) / double(product(grid)));
    progress.finish();
  }
  Run run;
  run.result = done.get();
  run.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  run.bank_conflicts_counted = machine.checks != emulator::Checks::none();
  return run;
}

//===--- Results ----------------------------------------------------------------------------------------===//

void print_json(const RunOptions &options, const Extents &grid, const Extents &block, const Run &run,
                const std::vector<Output> &outputs) {
  const emulator::Counters &counters = run.result.counters;
  ordered_json written = ordered_json::array();
  for (const Output &output : outputs)
    written.push_back({{"argument", output.argument},
                       {"file", output.path},
                       {"type", npy_type_keyword(output.array.type)},
                       {"shape", output.array.shape}});
  ordered_json json = {
      {"kernel", options.kernel},
      {"grid", grid},
      {"block", block},
      {"clean", run.result.ok()},
      {"failed", run.result.failure() != nullptr},
      {"seconds", run.seconds},
      {"counters",
       {{"workgroups", counters.workgroups},
        {"waves", counters.waves},
        {"wave_instructions", counters.wave_instructions},
        {"mfma_instructions", counters.mfma_instructions},
        {"lds_bank_conflicts", counters.lds_bank_conflicts},
        {"buffer_lanes_out_of_range", counters.buffer_lanes_out_of_range}}},
      {"reports", ordered_json::parse(emulator::to_json(run.result.reports))},
      {"reports_dropped", run.result.reports_dropped},
      {"outputs", written},
  };
  if (run.result.fidelity) json["fidelity"] = ordered_json::parse(emulator::to_json(*run.result.fidelity));
  if (!run.bank_conflicts_counted) json["counters"]["lds_bank_conflicts"] = nullptr;
  fmt::print("{}\n", json.dump(2));
}

void print_text(const RunOptions &options, const KernelArguments &arguments, const Run &run,
                const std::vector<Output> &outputs) {
  const emulator::Counters &counters = run.result.counters;
  for (const emulator::Report &report : run.result.reports)
    fmt::print("{}\n", emulator::to_text(report));
  if (run.result.fidelity) fmt::print("{}", emulator::to_text(*run.result.fidelity));
  fmt::print("{}: {}, {}, {}, {}, {}\n", options.kernel, counted(counters.workgroups, "workgroup"),
             counted(counters.waves, "wave"), counted(counters.wave_instructions, "instruction"),
             counted(counters.mfma_instructions, "MFMA"),
             run.bank_conflicts_counted ? counted(counters.lds_bank_conflicts, "LDS bank conflict")
                                        : "LDS bank conflicts not counted");
  for (const Output &output : outputs)
    fmt::print("{}: {} {} written to {}\n", arguments.name(output.argument),
               npy_type_keyword(output.array.type), shape_text(output.array.shape), output.path);
  const auto warnings = size_t(std::ranges::count(run.result.reports, false, &emulator::Report::fails));
  if (run.result.ok())
    fmt::print("nothing to report\n");
  else
    fmt::print("{}{}\n", reports_text(run.result.reports.size(), warnings),
               run.result.reports_dropped == 0
                   ? ""
                   : fmt::format("; --max-reports leaves out others, which occurred {}",
                                 counted(run.result.reports_dropped, "time")));
}

} // namespace

int run_command(RunOptions options) {
  const std::unique_ptr<emulator::Program> program = load_code(options.code_file);
  const package::Kernel &kernel = find_kernel(*program, options.kernel);
  options.kernel = kernel.name;
  const Extents grid = parse_extents("--grid", options.grid, 1, 1);
  const Extents block = parse_extents("--block", options.block, 1, 1);
  check_shape(options, kernel, grid, block);

  emulator::Options machine = machine_options(options);

  if (!options.outputs.empty() && options.arguments.empty() && options.placed_arguments.empty())
    throw ToolError(
        fmt::format("--out {} needs the --arg or --arg-at that makes the memory", options.outputs.front()));
  emulator::Memory memory;
  const bool placed = !options.kernarg_file.empty() || !options.placed_arguments.empty();
  const KernelArguments arguments =
      placed ? KernelArguments(kernel, options.kernarg_file, options.placed_arguments, memory)
             : KernelArguments(kernel, options.arguments, memory);
  if (options.timing) return time_kernel(*program, options, {grid, block, arguments.bytes(), memory});
  std::vector<Output> outputs = parse_outputs(options, arguments);
  const std::unique_ptr<TraceWriter> trace = make_trace(options, grid, block);
  machine.tracer = trace.get();

  const Run run = launch(*program, options, grid, block, arguments.bytes(), memory, machine);
  if (trace) trace->finish();
  for (Output &output : outputs) {
    output.array = arguments.contents(output.argument);
    write_npy(*output.file, output.array);
  }
  for (const Output &output : outputs)
    output.file->publish();
  if (options.json)
    print_json(options, grid, block, run, outputs);
  else
    print_text(options, arguments, run, outputs);
  return run.result.failure() ? 1 : 0;
}

} // namespace sluice::tools::emu
