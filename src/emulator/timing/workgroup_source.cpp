//===- workgroup_source.cpp - the workgroups that compute units simulate --------------------------------===//
#include "emulator/timing/workgroup_source.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <stdexcept>
#include <string>

#include "emulator/isa/timing_constants.h"

namespace sluice::emulator::timing {

namespace {

uint64_t workgroups_of(const std::array<uint32_t, 3> &grid) {
  return uint64_t(grid[0]) * grid[1] * grid[2];
}

constexpr uint32_t parts = 8; // a simulation is divided into these, to see how much they differ

/// All workgroups of the first XCDs, each as soon as a place is free.
class WholeXcds : public WorkgroupSource {
public:
  WholeXcds(uint64_t workgroups, const Selection &selection)
      : workgroups(workgroups), compute_units(selection.compute_units), given(selection.xcds) {
    for (uint64_t xcd = 0; xcd < selection.xcds; ++xcd) {
      given[xcd] = xcd;
      if (xcd < workgroups) left += (workgroups - xcd + device_xcds - 1) / device_xcds;
    }
  }

  std::optional<Assignment> next(uint32_t compute_unit) override {
    uint64_t &number = given[compute_unit / compute_units];
    if (number >= workgroups) return std::nullopt;
    const Assignment assignment{number, uint32_t(number / device_xcds % parts), true};
    number += device_xcds;
    return assignment;
  }

private:
  const uint64_t workgroups;
  const uint32_t compute_units;
  std::vector<uint64_t> given; // the next one, by XCD
};

/// The ranks of the fractions of k multiples of `step`: a permutation that correlates neither with the order
/// itself nor with that of another irrational step.
std::vector<uint32_t> scattered(uint32_t count, double step) {
  std::vector<uint32_t> order(count), rank(count);
  std::iota(order.begin(), order.end(), 0u);
  const auto fraction = [&](uint32_t k) { return std::fmod((k + 0.5) * step, 1.0); };
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return fraction(a) < fraction(b); });
  for (uint32_t i = 0; i < count; ++i)
    rank[order[i]] = i;
  return rank;
}

/// A Latin hypercube over the grid: along each axis the samples are evenly spread from its first coordinate
/// to its last. The other compute units of an XCD get the dispatcher's neighbours of the first one's
/// workgroups.
class Sample : public WorkgroupSource {
public:
  Sample(std::array<uint32_t, 3> grid, const TimingOptions &options, const Selection &selection,
         uint32_t places)
      : workgroups(workgroups_of(grid)), device_units(options.device.compute_units),
        latency_clk(selection.from_start ? 0 : timing::latency_clk(Level::hbm, options.device)),
        compute_units(selection.compute_units), units(size_t(selection.xcds) * selection.compute_units) {
    const uint32_t strata = selection.rounds * selection.xcds;
    const std::vector<uint32_t> x = scattered(strata, (std::sqrt(5.0) - 1) / 2);
    const std::vector<uint32_t> z = scattered(strata, std::sqrt(2.0) - 1);
    const auto coordinate = [&](uint32_t stratum, uint32_t extent) {
      if (strata == 1) return uint64_t(extent - 1) / 2;
      return (uint64_t(stratum) * (extent - 1) + (strata - 1) / 2) / (strata - 1);
    };
    for (uint32_t stratum = 0; stratum < strata; ++stratum) {
      const uint64_t first =
          coordinate(x[stratum], grid[0]) +
          grid[0] * (coordinate(stratum, grid[1]) + grid[1] * coordinate(z[stratum], grid[2]));
      const uint32_t xcd = stratum % selection.xcds;
      for (uint32_t i = 0; i < compute_units && taken.size() < workgroups; ++i)
        units[xcd * compute_units + i].given.push_back(
            {take(first + uint64_t(device_xcds) * options.compute_unit_stride * i), stratum, true});
    }
    left = taken.size();
    for (Unit &unit : units)
      std::sort(unit.given.begin(), unit.given.end(),
                [](const Assignment &a, const Assignment &b) { return a.number < b.number; });
    if (!selection.from_start) add_company(places);
  }

  // Compute units in lockstep would all wait for data that in a running launch one of them has already
  // fetched.
  uint64_t begin(uint32_t compute_unit) const override {
    return uint64_t(compute_unit % compute_units) * latency_clk;
  }

  std::optional<Assignment> next(uint32_t compute_unit) override {
    Unit &unit = units[compute_unit];
    if (unit.next == unit.given.size()) return std::nullopt;
    return unit.given[unit.next++];
  }

private:
  struct Unit {
    std::vector<Assignment> given;
    size_t next = 0;
  };

  /// The workgroup with this number, or the next one that is not taken.
  uint64_t take(uint64_t number) {
    number %= workgroups;
    while (!taken.insert(number).second)
      number = (number + 1) % workgroups;
    return number;
  }

  /// Before the counting workgroups, a compute unit gets those that the dispatcher gave it just before the
  /// first of them; afterwards, it gets the ones that follow. They are never counting ones, so data that is
  /// read once stays cold.
  void add_company(uint32_t places) {
    for (Unit &unit : units) {
      if (unit.given.empty()) continue;
      const uint64_t first = unit.given.front().number, last = unit.given.back().number;
      std::vector<Assignment> before;
      // As many again afterwards: each place is refilled until the last counting workgroup has ended.
      const size_t afterwards = unit.given.size() + places;
      for (uint64_t k = places; k > 0 && taken.size() < workgroups; --k)
        before.push_back({take(first + workgroups - k * device_units % workgroups), 0, false});
      unit.given.insert(unit.given.begin(), before.begin(), before.end());
      for (uint64_t k = 1; k <= afterwards && taken.size() < workgroups; ++k)
        unit.given.push_back({take(last + k * device_units), 0, false});
    }
  }

  const uint64_t workgroups;
  const uint64_t device_units;
  const uint64_t latency_clk;
  const uint32_t compute_units; // per XCD
  std::vector<Unit> units;
  std::set<uint64_t> taken;
};

} // namespace

Selection select_workgroups(std::array<uint32_t, 3> grid, const TimingOptions &options, uint32_t places) {
  const uint32_t most = options.device.compute_units_of_xcd();
  if (options.compute_units == 0 || options.compute_units > most)
    throw std::invalid_argument(std::to_string(options.compute_units) +
                                " compute units to be simulated together; it must be one to " +
                                std::to_string(most));
  if (options.compute_unit_stride == 0 ||
      (options.compute_units - 1) * uint64_t(options.compute_unit_stride) >= most)
    throw std::invalid_argument("compute_unit_stride is " + std::to_string(options.compute_unit_stride) +
                                "; with it " + std::to_string(options.compute_units) +
                                " compute units must be among the " + std::to_string(most) + " of an XCD");
  if (options.xcds > device_xcds)
    throw std::invalid_argument(std::to_string(options.xcds) + " XCDs to be simulated; the device has " +
                                std::to_string(device_xcds));
  const uint64_t workgroups = workgroups_of(grid);
  Selection selection;
  selection.compute_units = options.compute_units;
  selection.xcds = std::max(options.xcds, 1u);
  selection.whole_xcds = options.workgroups == 0 && options.compute_units == most;
  if (selection.whole_xcds) {
    selection.from_start = true;
    return selection;
  }
  const uint64_t gets = (workgroups + options.device.compute_units - 1) / options.device.compute_units;
  // Launches of so few rounds have no middle to take a sample from.
  const bool is_short = gets <= uint64_t(2) * places;
  selection.from_start = options.workgroups == 0 || options.workgroups >= gets || is_short;
  selection.rounds = uint32_t(selection.from_start ? gets : options.workgroups);
  if (options.xcds == 0 && selection.from_start) {
    // Few rounds would cover few coordinates of the grid: compute units of further XCDs cover others.
    const uint64_t groups = (workgroups + options.compute_units - 1) / options.compute_units;
    const uint64_t wanted = std::min<uint64_t>(parts, groups);
    selection.xcds = uint32_t(std::min<uint64_t>((wanted + gets - 1) / gets, device_xcds));
  }
  return selection;
}

std::unique_ptr<WorkgroupSource> make_source(std::array<uint32_t, 3> grid, const TimingOptions &options,
                                             const Selection &selection, uint32_t places) {
  if (selection.whole_xcds) return std::make_unique<WholeXcds>(workgroups_of(grid), selection);
  return std::make_unique<Sample>(grid, options, selection, places);
}

uint32_t used_places(uint64_t workgroups, uint32_t resident, const Device &device) {
  const uint64_t compute_units = device_xcds * device.compute_units_of_xcd();
  return uint32_t(std::min<uint64_t>(resident, (workgroups + compute_units - 1) / compute_units));
}

} // namespace sluice::emulator::timing
