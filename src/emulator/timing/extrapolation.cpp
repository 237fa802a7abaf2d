//===- extrapolation.cpp - from simulated workgroups to the device --------------------------------------===//
#include "emulator/timing/extrapolation.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <queue>

#include "emulator/timing/constants.h"
#include "emulator/timing/workgroup_source.h"

namespace sluice::emulator::timing {

namespace {

/// What is known or guessed of a workgroup.
struct Work {
  double clk = 0, flops = 0, matrix_clk = 0, instructions = 0;

  void add(const Work &other, double factor) {
    clk += factor * other.clk;
    flops += factor * other.flops;
    matrix_clk += factor * other.matrix_clk;
    instructions += factor * other.instructions;
  }
};

Work work_of(const WorkgroupTime &time) {
  return {double(time.end - time.start), double(time.flops), double(time.matrix_clk),
          double(time.instructions)};
}

struct Axis {
  const char *name;
  std::function<uint64_t(uint64_t)> coordinate; // of a workgroup's number
};

/// Means by coordinate, and straight lines between them.
class Curve {
public:
  void add(uint64_t coordinate, const Work &work, double factor = 1) {
    Point &point = points[coordinate];
    point.sum.add(work, factor);
    point.count += factor;
    if (point.count == 0) points.erase(coordinate);
  }
  Work at(uint64_t coordinate) const {
    const auto above = points.lower_bound(coordinate);
    if (above == points.end()) return mean(std::prev(above)->second);
    if (above->first == coordinate || above == points.begin()) return mean(above->second);
    const auto below = std::prev(above);
    const double part = double(coordinate - below->first) / double(above->first - below->first);
    Work work;
    work.add(mean(below->second), 1 - part);
    work.add(mean(above->second), part);
    return work;
  }

private:
  struct Point {
    Work sum;
    double count = 0;
  };
  static Work mean(const Point &point) {
    Work work;
    work.add(point.sum, 1 / point.count);
    return work;
  }
  std::map<uint64_t, Point> points;
};

Curve curve_of(const std::vector<WorkgroupTime> &simulated, const Axis &axis) {
  Curve curve;
  for (const WorkgroupTime &time : simulated)
    curve.add(axis.coordinate(time.number), work_of(time));
  return curve;
}

/// How far off each workgroup's instructions are when the others say what they should be.
double error_of(const std::vector<WorkgroupTime> &simulated, const Axis &axis) {
  Curve curve = curve_of(simulated, axis);
  double error = 0;
  for (const WorkgroupTime &time : simulated) {
    const uint64_t coordinate = axis.coordinate(time.number);
    curve.add(coordinate, work_of(time), -1);
    error += std::abs(curve.at(coordinate).instructions - double(time.instructions));
    curve.add(coordinate, work_of(time));
  }
  return error;
}

/// The axis that explains the most; the first one, which explains nothing, unless another is better by half.
const Axis &best_axis(const std::vector<WorkgroupTime> &simulated, const std::vector<Axis> &axes) {
  const Axis *best = &axes.front();
  if (simulated.size() < 2) return *best;
  double least = error_of(simulated, *best) / 2;
  for (size_t i = 1; i < axes.size(); ++i) {
    const double error = error_of(simulated, axes[i]);
    if (error >= least) continue;
    best = &axes[i];
    least = error;
  }
  return *best;
}

} // namespace

void extrapolate(std::array<uint32_t, 3> grid, bool whole_xcd, TimingResult &result) {
  std::sort(result.simulated.begin(), result.simulated.end(),
            [](const WorkgroupTime &a, const WorkgroupTime &b) { return a.number < b.number; });
  const uint64_t x = grid[0], y = grid[1];
  const std::vector<Axis> axes = {{"none", [](uint64_t) { return uint64_t(0); }},
                                  {"x", [=](uint64_t number) { return number % x; }},
                                  {"y", [=](uint64_t number) { return number / x % y; }},
                                  {"z", [=](uint64_t number) { return number / x / y; }},
                                  {"number", [](uint64_t number) { return number; }}};
  const Axis &axis = best_axis(result.simulated, axes);
  const Curve curve = curve_of(result.simulated, axis);
  result.extrapolated_along = axis.name;

  using Place = std::pair<double, uint32_t>; // free from, number: first a place on each compute unit
  using Places = std::priority_queue<Place, std::vector<Place>, std::greater<>>;
  std::vector<Places> xcds(device_xcds);
  const uint32_t places_per_xcd = used_places(result.workgroups, result.workgroups_per_cu, result.device) *
                                  result.device.compute_units_of_xcd();
  for (Places &places : xcds)
    for (uint32_t i = 0; i < places_per_xcd; ++i)
      places.emplace(0, i);
  double last = 0;
  for (uint64_t number = 0; number < result.workgroups; ++number) {
    const Work work = curve.at(axis.coordinate(number));
    Places &places = xcds[number % device_xcds];
    const auto [free, place] = places.top();
    places.pop();
    const double end = free + workgroup_start_clk + work.clk;
    places.emplace(end, place);
    last = std::max(last, end);
    result.device_occupied_clk += workgroup_start_clk + work.clk;
    result.device_flops += work.flops;
    result.device_matrix_clk += work.matrix_clk;
  }
  // What ran needs no guess.
  result.device_clk = std::max(uint64_t(std::llround(last)), whole_xcd ? result.simulated_clk : 0);
  result.device_places = places_per_xcd * device_xcds;
}

} // namespace sluice::emulator::timing
