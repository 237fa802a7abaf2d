//===- device.cpp - from compute units to the device ----------------------------------------------------===//
//
// Workgroups go to the XCDs in turn, x fastest, and in an XCD to its compute units in turn; when all are full
// the next one waits for a place. The first compute units of the first XCD are simulated with the workgroups
// that such turns give them. A workgroup that is not simulated takes as long as the simulated one whose
// number is nearest, and is then dealt to the whole device: the launch ends with the last of them.
//
//===----------------------------------------------------------------------------------------------------===//
#include <algorithm>
#include <functional>
#include <queue>
#include <stdexcept>

#include "emulator/stats/occupancy.h"
#include "emulator/timing/compute_unit.h"

namespace sluice::emulator::timing {

namespace {

class InTurn : public WorkgroupSource {
public:
  InTurn(uint64_t workgroups, const TimingOptions &options)
      : workgroups(workgroups), most(options.workgroups), xcd_units(options.device.compute_units_of_xcd()),
        given(options.compute_units) {}

  uint64_t next(uint32_t compute_unit) override {
    uint64_t &count = given[compute_unit];
    const uint64_t number = device_xcds * (compute_unit + xcd_units * count);
    if (number >= workgroups || (most != 0 && count >= most)) return never;
    ++count;
    return number;
  }

private:
  const uint64_t workgroups;
  const uint64_t most;
  const uint32_t xcd_units;
  std::vector<uint64_t> given;
};

/// Of workgroups sorted by number.
const WorkgroupTime &nearest(const std::vector<WorkgroupTime> &simulated, uint64_t number) {
  const auto above =
      std::lower_bound(simulated.begin(), simulated.end(), number,
                       [](const WorkgroupTime &time, uint64_t wanted) { return time.number < wanted; });
  if (above == simulated.begin()) return *above;
  const auto below = above - 1;
  return above == simulated.end() || number - below->number <= above->number - number ? *below : *above;
}

/// Deals all workgroups to the device.
void extrapolate(TimingResult &result) {
  std::sort(result.simulated.begin(), result.simulated.end(),
            [](const WorkgroupTime &a, const WorkgroupTime &b) { return a.number < b.number; });
  using Place = std::pair<uint64_t, uint32_t>; // free from, number: first a place on each compute unit
  using Places = std::priority_queue<Place, std::vector<Place>, std::greater<>>;
  std::vector<Places> xcds(device_xcds);
  for (Places &places : xcds)
    for (uint32_t i = 0; i < result.workgroups_per_cu * result.device.compute_units_of_xcd(); ++i)
      places.emplace(0, i);
  for (uint64_t number = 0; number < result.workgroups; ++number) {
    const WorkgroupTime &like = nearest(result.simulated, number);
    Places &places = xcds[number % device_xcds];
    const auto [free, place] = places.top();
    places.pop();
    const uint64_t end = free + workgroup_start_clk + like.end - like.start;
    places.emplace(end, place);
    result.device_clk = std::max(result.device_clk, end);
    result.device_flops += double(like.flops);
    result.device_matrix_clk += double(like.matrix_clk);
  }
}

} // namespace

TimingResult time_launch(const Program &program, std::string_view kernel, std::array<uint32_t, 3> grid,
                         std::array<uint32_t, 3> block, uint32_t dynamic_lds_bytes,
                         std::span<const std::byte> kernarg, const Memory &memory,
                         const TimingOptions &options) {
  options.device.expect_valid();
  const uint32_t most = options.device.compute_units_of_xcd();
  if (options.compute_units == 0 || options.compute_units > most)
    throw std::invalid_argument(std::to_string(options.compute_units) +
                                " compute units to be simulated together; it is one to " +
                                std::to_string(most));
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
  InTurn source(result.workgroups, options);
  std::vector<std::unique_ptr<ComputeUnit>> units;
  for (uint32_t i = 0; i < options.compute_units; ++i) {
    const bool observed = options.observer && options.observer->compute_unit() == i;
    units.push_back(std::make_unique<ComputeUnit>(i, launch, timings, shared, source, result,
                                                  observed ? options.observer : nullptr));
    units.back()->fill(fits.workgroups_per_cu);
  }
  while (!launch.stop) {
    const auto first = std::min_element(units.begin(), units.end(), [](const auto &a, const auto &b) {
      return a->next_turn() < b->next_turn();
    });
    if ((*first)->next_turn() == never) break;
    (*first)->take_turn();
  }
  for (const auto &unit : units)
    unit->finish();
  result.traffic = shared.traffic;
  result.reports = setup.reports();
  if (result.reports.empty()) extrapolate(result);
  return result;
}

} // namespace sluice::emulator::timing
