//===- workgroup_source.cpp - which workgroups compute units simulate -----------------------------------===//
#include "emulator/timing/workgroup_source.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <stdexcept>
#include <string>

#include "emulator/timing/constants.h"

namespace sluice::emulator::timing {

namespace {

uint64_t workgroups_of(const std::array<uint32_t, 3> &grid) {
  return uint64_t(grid[0]) * grid[1] * grid[2];
}

uint64_t workgroups_of_xcd(uint64_t workgroups) {
  return (workgroups + device_xcds - 1) / device_xcds;
}

/// All workgroups of the first XCD, each as soon as there is a place.
class WholeXcd : public WorkgroupSource {
public:
  explicit WholeXcd(uint64_t workgroups) : workgroups(workgroups) {
    left = workgroups_of_xcd(workgroups);
    whole = true;
  }

  std::optional<Assignment> next(uint32_t) override {
    if (given >= workgroups) return std::nullopt;
    const Assignment assignment{given, true};
    given += device_xcds;
    return assignment;
  }

private:
  const uint64_t workgroups;
  uint64_t given = 0;
};

/// What some compute units of it would get if all workgroups took as long.
class InTurn : public WorkgroupSource {
public:
  InTurn(uint64_t workgroups, const TimingOptions &options)
      : workgroups(workgroups), stride(options.compute_unit_stride),
        xcd_units(options.device.compute_units_of_xcd()), given(options.compute_units) {
    for (uint32_t i = 0; i < options.compute_units; ++i)
      for (uint64_t k = 0; number(i, k) < workgroups; ++k)
        ++left;
    whole = left == workgroups_of_xcd(workgroups);
  }

  std::optional<Assignment> next(uint32_t compute_unit) override {
    const uint64_t wanted = number(compute_unit, given[compute_unit]);
    if (wanted >= workgroups) return std::nullopt;
    ++given[compute_unit];
    return Assignment{wanted, true};
  }

private:
  uint64_t number(uint32_t compute_unit, uint64_t count) const {
    return device_xcds * (compute_unit * stride + xcd_units * count);
  }

  const uint64_t workgroups;
  const uint64_t stride;
  const uint64_t xcd_units;
  std::vector<uint64_t> given;
};

/// Where k multiples of `step` stand in the order of their fractions: a permutation that follows neither the
/// order itself nor that of another irrational step.
std::vector<uint32_t> scattered(uint32_t count, double step) {
  std::vector<uint32_t> order(count), rank(count);
  std::iota(order.begin(), order.end(), 0u);
  const auto fraction = [&](uint32_t k) { return std::fmod((k + 0.5) * step, 1.0); };
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return fraction(a) < fraction(b); });
  for (uint32_t i = 0; i < count; ++i)
    rank[order[i]] = i;
  return rank;
}

/// A Latin hypercube over the grid: along each axis the samples stand evenly from its first coordinate to its
/// last. What the first compute unit takes has the dispatcher's neighbours on the others.
class Sample : public WorkgroupSource {
public:
  Sample(std::array<uint32_t, 3> grid, const TimingOptions &options, uint32_t places)
      : places(places), latency_clk(timing::latency_clk(Level::hbm, options.device)),
        compute_units(options.compute_units) {
    const uint64_t workgroups = workgroups_of(grid);
    const uint32_t rounds = options.workgroups;
    const std::vector<uint32_t> x = scattered(rounds, (std::sqrt(5.0) - 1) / 2);
    const std::vector<uint32_t> z = scattered(rounds, std::sqrt(2.0) - 1);
    const auto coordinate = [&](uint32_t stratum, uint32_t extent) {
      if (rounds == 1) return uint64_t(extent - 1) / 2;
      return (uint64_t(stratum) * (extent - 1) + (rounds - 1) / 2) / (rounds - 1);
    };
    std::set<uint64_t> taken;
    for (uint32_t round = 0; round < rounds; ++round) {
      const uint64_t first = coordinate(x[round], grid[0]) +
                             grid[0] * (coordinate(round, grid[1]) + grid[1] * coordinate(z[round], grid[2]));
      for (uint32_t i = 0; i < options.compute_units && taken.size() < workgroups; ++i) {
        uint64_t number = (first + uint64_t(device_xcds) * options.compute_unit_stride * i) % workgroups;
        while (!taken.insert(number).second)
          number = (number + 1) % workgroups;
        compute_units[i].numbers.push_back(number);
      }
    }
    left = taken.size();
    for (Unit &unit : compute_units)
      std::sort(unit.numbers.begin(), unit.numbers.end());
  }

  // In step with one another they would all wait for what in a running launch one of them has fetched.
  uint64_t begin(uint32_t compute_unit) const override { return uint64_t(compute_unit) * latency_clk; }

  std::optional<Assignment> next(uint32_t compute_unit) override {
    Unit &unit = compute_units[compute_unit];
    if (unit.numbers.empty()) return std::nullopt;
    const size_t index = unit.given++, count = unit.numbers.size();
    if (index < places) return Assignment{unit.numbers[count - 1 - index % count], false};
    return Assignment{unit.numbers[(index - places) % count], index - places < count};
  }

private:
  struct Unit {
    std::vector<uint64_t> numbers;
    size_t given = 0;
  };
  const uint32_t places;
  const uint64_t latency_clk;
  std::vector<Unit> compute_units;
};

} // namespace

std::unique_ptr<WorkgroupSource> make_source(std::array<uint32_t, 3> grid, const TimingOptions &options,
                                             uint32_t places) {
  const uint32_t most = options.device.compute_units_of_xcd();
  if (options.compute_units == 0 || options.compute_units > most)
    throw std::invalid_argument(std::to_string(options.compute_units) +
                                " compute units to be simulated together; it is one to " +
                                std::to_string(most));
  if (options.compute_unit_stride == 0 ||
      (options.compute_units - 1) * uint64_t(options.compute_unit_stride) >= most)
    throw std::invalid_argument("compute_unit_stride is " + std::to_string(options.compute_unit_stride) +
                                "; with it " + std::to_string(options.compute_units) +
                                " compute units must lie among the " + std::to_string(most) + " of an XCD");
  const uint64_t workgroups = workgroups_of(grid);
  if (options.workgroups != 0) return std::make_unique<Sample>(grid, options, places);
  if (options.compute_units == most) return std::make_unique<WholeXcd>(workgroups);
  return std::make_unique<InTurn>(workgroups, options);
}

uint32_t used_places(uint64_t workgroups, uint32_t resident, const Device &device) {
  const uint64_t compute_units = device_xcds * device.compute_units_of_xcd();
  return uint32_t(std::min<uint64_t>(resident, (workgroups + compute_units - 1) / compute_units));
}

} // namespace sluice::emulator::timing
