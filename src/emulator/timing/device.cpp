//===- device.cpp - a launch on some of the device's compute units --------------------------------------===//
//
// Simulates compute units together on the workgroups that a source gives them, and extrapolates to the
// device.
//
//===----------------------------------------------------------------------------------------------------===//
#include <algorithm>
#include <cstdio>
#include <set>
#include <stdexcept>

#include "emulator/timing/compute_unit.h"
#include "emulator/timing/extrapolation.h"
#include "emulator/timing/long_loops.h"
#include "emulator/timing/saved_memory.h"
#include "package/occupancy.h"

namespace sluice::emulator::timing {

namespace {

/// Larger than differences between workgroups of one kind, which come from their data.
constexpr double different_work_percent = 5;
constexpr double large_error_percent = 5;
constexpr size_t least_parts = 4; // of a sample, so that its error is meaningful

struct Call {
  const Program &program;
  std::string_view kernel;
  std::array<uint32_t, 3> grid;
  std::array<uint32_t, 3> block;
  uint32_t dynamic_lds_bytes;
  std::span<const std::byte> kernarg;
  const Memory &memory;
};

OpRange ops_of(const Call &call) {
  const ProgramImpl &program = call.program.impl();
  return program.ops_of(*program.object.find_kernel(call.kernel));
}

std::string address_of(const ProgramImpl &program, uint32_t op) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(program.address_of(op)));
  return text;
}

[[noreturn]] void refuse_counter(const Call &call, const CounterWatch::Finding &finding) {
  const ProgramImpl &program = call.program.impl();
  throw GlobalCounterError("kernel \"" + std::string(call.kernel) +
                           "\" takes work from a counter in memory: the branch at " +
                           address_of(program, finding.branch) + " (" + program.text(finding.branch) +
                           ") ends a loop on the value that the instruction at " +
                           address_of(program, finding.atomic) + " (" + program.text(finding.atomic) +
                           ") returned, so a sample of workgroups does not represent the others: "
                           "simulate all of them, on all compute units of eight XCDs");
}

/// Simulates the given selection, or the one that the options make. Adds instructions, traffic and workgroups
/// to the result.
Selection simulate(const Call &call, const TimingOptions &options, const std::optional<Selection> &selected,
                   TimingResult &result) {
  Options machine;
  machine.checks = Checks::none();
  machine.completion = CompletionOrder::early;
  machine.instruction_budget = options.instruction_budget;
  LaunchSetup setup(call.program, call.kernel, call.grid, call.block, call.dynamic_lds_bytes, call.kernarg,
                    call.memory, machine);
  LaunchState &launch = setup.state();
  const ProgramImpl &program = call.program.impl();

  result.kernel = call.kernel;
  result.device = options.device;
  result.workgroups = uint64_t(call.grid[0]) * call.grid[1] * call.grid[2];
  const package::Occupancy fits = package::occupancy(setup.kernel().vgprs, launch.lds_bytes, launch.threads);
  result.workgroups_per_cu = fits.workgroups_per_cu;
  result.waves_per_simd = fits.waves_per_simd;
  result.occupancy_limit = fits.limit;
  if (fits.workgroups_per_cu == 0)
    throw std::invalid_argument("no workgroup of kernel \"" + std::string(call.kernel) +
                                "\" fits on a compute unit: " + fits.limit);
  const uint32_t places = used_places(result.workgroups, fits.workgroups_per_cu, options.device);
  const Selection selection = selected ? *selected : select_workgroups(call.grid, options, places);
  result.compute_units = selection.compute_units * selection.xcds;
  result.instructions.resize(program.fast.size());

  const std::vector<OpTiming> timings = op_timings(program);
  SharedLevels shared(selection.compute_units, selection.xcds, options.device);
  std::optional<CounterWatch> counters;
  if (CounterWatch::is_needed(program)) counters.emplace(program, ops_of(call));
  const std::unique_ptr<WorkgroupSource> source = make_source(call.grid, options, selection, places);
  std::vector<std::unique_ptr<ComputeUnit>> units;
  for (uint32_t i = 0; i < result.compute_units; ++i) {
    const bool observed = options.observer && options.observer->compute_unit() == i;
    units.push_back(std::make_unique<ComputeUnit>(i, i / selection.compute_units, launch, timings, shared,
                                                  *source, result, observed ? options.observer : nullptr,
                                                  counters ? &*counters : nullptr));
  }
  for (uint32_t i = 0; i < places; ++i)
    for (const auto &unit : units)
      unit->add_place();
  const bool all_run = selection.from_start && source->count() == result.workgroups;
  // A turn changes the next turn of no other compute unit.
  std::vector<uint64_t> turns;
  for (const auto &unit : units)
    turns.push_back(unit->next_turn());
  while (!launch.stop && !source->all_ended()) {
    const auto first = size_t(std::min_element(turns.begin(), turns.end()) - turns.begin());
    units[first]->take_turn();
    turns[first] = units[first]->next_turn();
    if (counters && counters->finding() && !all_run) refuse_counter(call, *counters->finding());
  }
  for (const auto &unit : units)
    unit->finish();
  result.traffic = shared.moved(double(result.simulated_clk));
  result.reports = setup.reports();
  result.is_complete = selection.from_start && result.simulated.size() == result.workgroups;
  return selection;
}

/// Whether the workgroups of other XCDs do different work than the simulated ones. Workgroup k goes to XCD k
/// mod 8: if the grid's x is a multiple of that, an XCD gets only some values of x.
bool others_differ(const Call &call, const TimingOptions &options, const TimingResult &result) {
  Selection probe;
  probe.rounds = uint32_t(std::min<uint64_t>(result.workgroups, 2 * device_xcds));
  probe.from_start = true;
  TimingOptions one = options;
  one.compute_units = 1;
  one.observer = nullptr;
  TimingResult others;
  simulate(call, one, probe, others);
  return others.reports.empty() &&
         difference_percent(call.grid, result, others.simulated) > different_work_percent;
}

/// Warns if the sample is too small to represent the others, in the words of its options.
void warn_of_sample(TimingResult &result) {
  if (result.is_complete) return;
  std::set<uint32_t> all_parts;
  for (const WorkgroupTime &time : result.simulated)
    all_parts.insert(time.part);
  const size_t parts = all_parts.size();
  char text[160];
  const auto simulated = static_cast<unsigned long long>(result.simulated.size());
  const auto workgroups = static_cast<unsigned long long>(result.workgroups);
  if (!result.error_percent) {
    std::snprintf(text, sizeof text,
                  "the sample is too small: %llu of %llu workgroups do not show how accurate the time is",
                  simulated, workgroups);
    result.warnings.emplace_back(text);
  } else if (parts < least_parts) {
    std::snprintf(
        text, sizeof text,
        "the sample is too small: an error of %.1f %% from %zu parts of it, %llu of %llu workgroups, "
        "is uncertain",
        *result.error_percent, parts, simulated, workgroups);
    result.warnings.emplace_back(text);
  } else if (*result.error_percent > large_error_percent) {
    std::snprintf(text, sizeof text,
                  "the sample is too small: %llu of %llu workgroups leave an error of about %.0f %%",
                  simulated, workgroups, *result.error_percent);
    result.warnings.emplace_back(text);
  }
}

/// The model fetches each instruction in time, for any cache size.
void warn_of_loops(const Call &call, TimingResult &result) {
  const ProgramImpl &program = call.program.impl();
  for (const LongLoop &loop : loops_longer_than(program, ops_of(call), result, instruction_cache_bytes))
    result.warnings.push_back(
        "the loop at " + address_of(program, loop.header) + " runs " + std::to_string(loop.bytes) +
        " bytes of instructions, and the instruction cache of " + "two compute units holds " +
        std::to_string(instruction_cache_bytes) + ": the time does not include its misses");
}

} // namespace

TimingResult time_launch(const Program &program, std::string_view kernel, std::array<uint32_t, 3> grid,
                         std::array<uint32_t, 3> block, uint32_t dynamic_lds_bytes,
                         std::span<const std::byte> kernarg, const Memory &memory,
                         const TimingOptions &options) {
  options.device.expect_valid();
  const Call call{program, kernel, grid, block, dynamic_lds_bytes, kernarg, memory};
  // Each simulation must find counters in memory as the launch does.
  std::optional<SavedMemory> before;
  if (CounterWatch::is_needed(program.impl()) && options.xcds == 0) before.emplace(memory);
  TimingResult result;
  Selection selection = simulate(call, options, std::nullopt, result);
  if (!result.reports.empty()) return result;
  const bool may_differ = selection.whole_xcds && options.xcds == 0 && !result.is_complete;
  if (may_differ && others_differ(call, options, result)) {
    if (before) before->restore();
    selection.xcds = device_xcds;
    result = {};
    simulate(call, options, selection, result);
    if (!result.reports.empty()) return result;
  }
  extrapolate(grid, selection, result);
  warn_of_sample(result);
  warn_of_loops(call, result);
  return result;
}

} // namespace sluice::emulator::timing
