//===- device.cpp - a launch on some of the device's compute units --------------------------------------===//
//
// Compute units of the first XCD run the workgroups that a source gives them, together; the device is
// extrapolated from these.
//
//===----------------------------------------------------------------------------------------------------===//
#include <algorithm>
#include <stdexcept>

#include "emulator/stats/occupancy.h"
#include "emulator/timing/compute_unit.h"
#include "emulator/timing/extrapolation.h"

namespace sluice::emulator::timing {

TimingResult time_launch(const Program &program, std::string_view kernel, std::array<uint32_t, 3> grid,
                         std::array<uint32_t, 3> block, uint32_t dynamic_lds_bytes,
                         std::span<const std::byte> kernarg, const Memory &memory,
                         const TimingOptions &options) {
  options.device.expect_valid();
  Options machine;
  machine.checks = Checks::none();
  machine.completion = CompletionOrder::early;
  machine.instruction_budget = options.instruction_budget;
  LaunchSetup setup(program, kernel, grid, block, dynamic_lds_bytes, kernarg, memory, machine);
  LaunchState &launch = setup.state();

  TimingResult result;
  result.kernel = kernel;
  result.device = options.device;
  result.workgroups = uint64_t(grid[0]) * grid[1] * grid[2];
  const Occupancy fits = occupancy(setup.kernel().vgprs, launch.lds_bytes, launch.threads);
  result.workgroups_per_cu = fits.workgroups_per_cu;
  result.waves_per_simd = fits.waves_per_simd;
  result.occupancy_limit = fits.limit;
  if (fits.workgroups_per_cu == 0)
    throw std::invalid_argument("not one workgroup of kernel \"" + std::string(kernel) +
                                "\" fits on a compute unit: " + fits.limit);
  result.compute_units = options.compute_units;
  result.instructions.resize(program.impl().fast.size());

  const std::vector<OpTiming> timings = op_timings(program.impl());
  SharedLevels shared(options.compute_units, options.device);
  const uint32_t places = used_places(result.workgroups, fits.workgroups_per_cu, options.device);
  const std::unique_ptr<WorkgroupSource> source = make_source(grid, options, places);
  std::vector<std::unique_ptr<ComputeUnit>> units;
  for (uint32_t i = 0; i < options.compute_units; ++i) {
    const bool observed = options.observer && options.observer->compute_unit() == i;
    units.push_back(std::make_unique<ComputeUnit>(i, launch, timings, shared, *source, result,
                                                  observed ? options.observer : nullptr));
  }
  for (uint32_t i = 0; i < places; ++i)
    for (const auto &unit : units)
      unit->add_place();
  // A turn changes no other compute unit's next one.
  std::vector<uint64_t> turns;
  for (const auto &unit : units)
    turns.push_back(unit->next_turn());
  while (!launch.stop && !source->all_ended()) {
    const auto first = size_t(std::min_element(turns.begin(), turns.end()) - turns.begin());
    units[first]->take_turn();
    turns[first] = units[first]->next_turn();
  }
  for (const auto &unit : units)
    unit->finish();
  result.traffic = shared.traffic;
  result.reports = setup.reports();
  if (result.reports.empty()) extrapolate(grid, source->whole_xcd(), result);
  return result;
}

} // namespace sluice::emulator::timing
