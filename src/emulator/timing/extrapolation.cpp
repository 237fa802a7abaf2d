//===- extrapolation.cpp - from simulated workgroups to the device --------------------------------------===//
#include "emulator/timing/extrapolation.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <queue>
#include <set>

#include "emulator/isa/timing_constants.h"
#include "emulator/timing/workgroup_source.h"

namespace sluice::emulator::timing {

namespace {

/// Known or estimated figures of a workgroup.
struct Work {
  double clk = 0, flops = 0, matrix_clk = 0, instructions = 0, stored = 0;
  std::array<double, level_count> bytes{};

  void add(const Work &other, double factor) {
    clk += factor * other.clk;
    flops += factor * other.flops;
    matrix_clk += factor * other.matrix_clk;
    instructions += factor * other.instructions;
    stored += factor * other.stored;
    for (size_t i = 0; i < level_count; ++i)
      bytes[i] += factor * other.bytes[i];
  }
};

Work work_of(const WorkgroupTime &time) {
  Work work{double(time.end - time.start),     double(time.flops),
            double(time.matrix_clk),           double(time.instructions),
            double(time.traffic.stored_bytes), {}};
  for (size_t i = 0; i < level_count; ++i)
    work.bytes[i] = double(time.traffic.bytes(Level(i)));
  return work;
}

struct Axis {
  const char *name;
  std::function<uint64_t(uint64_t)> coordinate; // for a workgroup's number
};

/// Mean values by coordinate, interpolated linearly.
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

/// The total difference between workgroups' instructions and what the others predict.
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

std::vector<Axis> axes_of(std::array<uint32_t, 3> grid) {
  const uint64_t x = grid[0], y = grid[1];
  return {{"none", [](uint64_t) { return uint64_t(0); }},
          {"x", [=](uint64_t number) { return number % x; }},
          {"y", [=](uint64_t number) { return number / x % y; }},
          {"z", [=](uint64_t number) { return number / x / y; }},
          {"number", [](uint64_t number) { return number; }}};
}

/// A launch as extrapolated from the sample.
struct Launch {
  Work work;
  double clk = 0;
  std::array<XcdTime, device_xcds> xcds{};
};

/// Assigns workgroups to places, each to the first free one in its XCD.
Launch deal(const Curve &curve, const Axis &axis, const TimingResult &result, uint32_t places_per_xcd) {
  using Place = std::pair<double, uint32_t>; // free from, number: first a place on each compute unit
  using Places = std::priority_queue<Place, std::vector<Place>, std::greater<>>;
  std::vector<Places> xcds(device_xcds);
  for (Places &places : xcds)
    for (uint32_t i = 0; i < places_per_xcd; ++i)
      places.emplace(0, i);
  Launch launch;
  for (uint64_t number = 0; number < result.workgroups; ++number) {
    const Work work = curve.at(axis.coordinate(number));
    Places &places = xcds[number % device_xcds];
    XcdTime &xcd = launch.xcds[number % device_xcds];
    const auto [free, place] = places.top();
    places.pop();
    const double end = free + workgroup_start_clk + work.clk;
    places.emplace(end, place);
    ++xcd.workgroups;
    xcd.occupied_clk += workgroup_start_clk + work.clk;
    xcd.end_clk = std::max(xcd.end_clk, end);
    launch.work.add(work, 1);
  }
  for (const XcdTime &xcd : launch.xcds)
    launch.clk = std::max(launch.clk, xcd.end_clk);
  return launch;
}

/// Stored bytes that fit in L2 need not be moved before the launch ends.
double moved_bytes(const Work &work, Level level) {
  const double left = std::min(work.stored, double(device_xcds) * l2_bytes);
  return work.bytes[size_t(level)] - (level == Level::mall || level == Level::hbm ? left : 0);
}

/// The launch's minimum length by a level's bandwidth.
double least_clk(const Work &work, Level level, const Device &device) {
  return moved_bytes(work, level) / (share(level, device) * device.compute_units);
}

double launch_clk(const Launch &launch, const Device &device, Level *limit = nullptr) {
  double clk = launch.clk;
  for (size_t i = 0; i < level_count; ++i) {
    const double least = least_clk(launch.work, Level(i), device);
    if (least <= clk) continue;
    clk = least;
    if (limit) *limit = Level(i);
  }
  return clk;
}

/// The jackknife: how much the result changes if parts of the sample are left out.
std::optional<double> error_percent(const TimingResult &result, const Axis &axis, uint32_t places_per_xcd,
                                    double clk) {
  std::set<uint32_t> parts;
  for (const WorkgroupTime &time : result.simulated)
    parts.insert(time.part);
  if (parts.size() < 2 || clk == 0) return std::nullopt;
  std::vector<double> without;
  for (const uint32_t part : parts) {
    Curve curve;
    for (const WorkgroupTime &time : result.simulated)
      if (time.part != part) curve.add(axis.coordinate(time.number), work_of(time));
    without.push_back(launch_clk(deal(curve, axis, result, places_per_xcd), result.device));
  }
  const double count = double(without.size());
  const double mean = std::accumulate(without.begin(), without.end(), 0.0) / count;
  double squares = 0;
  for (const double value : without)
    squares += (value - mean) * (value - mean);
  return 100 * std::sqrt((count - 1) / count * squares) / clk;
}

/// The jackknife of the last end among simulated compute units: without the last one, it is that of the
/// second to last.
std::optional<double> end_error_percent(const TimingResult &result) {
  std::map<uint32_t, uint64_t> end_of;
  for (const WorkgroupTime &time : result.simulated)
    end_of[time.compute_unit] = std::max(end_of[time.compute_unit], time.end);
  if (end_of.size() < 2) return std::nullopt;
  std::vector<uint64_t> ends;
  for (const auto &[unit, end] : end_of)
    ends.push_back(end);
  std::partial_sort(ends.begin(), ends.begin() + 2, ends.end(), std::greater<>());
  return 100 * double(ends[0] - ends[1]) / double(ends[0]);
}

} // namespace

void extrapolate(std::array<uint32_t, 3> grid, const Selection &selection, TimingResult &result) {
  std::sort(result.simulated.begin(), result.simulated.end(),
            [](const WorkgroupTime &a, const WorkgroupTime &b) { return a.number < b.number; });
  const std::vector<Axis> axes = axes_of(grid);
  const Axis &axis = best_axis(result.simulated, axes);
  result.extrapolated_along = axis.name;
  const uint32_t places_per_xcd = used_places(result.workgroups, result.workgroups_per_cu, result.device) *
                                  result.device.compute_units_of_xcd();
  Launch launch = deal(curve_of(result.simulated, axis), axis, result, places_per_xcd);
  result.device_places = places_per_xcd * device_xcds;
  result.device_flops = launch.work.flops;
  result.device_matrix_clk = launch.work.matrix_clk;
  result.xcds.assign(launch.xcds.begin(), launch.xcds.end());
  for (const XcdTime &xcd : launch.xcds)
    result.device_occupied_clk += xcd.occupied_clk;
  for (size_t i = 0; i < level_count; ++i)
    result.device_bytes[i] = moved_bytes(launch.work, Level(i));

  // Simulated workgroups need no estimate. But their last waves do not wait for their stores, which must be
  // moved.
  if (result.is_complete) {
    result.error_percent = 0;
    for (XcdTime &xcd : result.xcds)
      xcd.end_clk = 0;
    for (const WorkgroupTime &time : result.simulated) {
      double &end = result.xcds[time.number % device_xcds].end_clk;
      end = std::max(end, double(time.end));
    }
    launch.clk = double(result.simulated_clk);
  }
  Level limit = Level::lds;
  const double clk = launch_clk(launch, result.device, &limit);
  if (clk > launch.clk) result.limited_by = level_name(limit);
  if (result.is_complete) {
    result.device_clk = uint64_t(std::ceil(clk));
    return;
  }
  // Workgroups that share a compute unit differ in duration: the youngest wait for the others, and the launch
  // for the youngest.
  const bool ends_as_simulated = selection.from_start && double(result.simulated_clk) > clk;
  result.device_clk = ends_as_simulated ? result.simulated_clk : uint64_t(std::ceil(clk));
  if (ends_as_simulated) result.limited_by.clear();
  if (ends_as_simulated && !selection.whole_xcds) result.error_percent = end_error_percent(result);
  if (!result.error_percent)
    result.error_percent = error_percent(result, axis, places_per_xcd, double(result.device_clk));
}

double difference_percent(std::array<uint32_t, 3> grid, const TimingResult &result,
                          std::span<const WorkgroupTime> others) {
  const std::vector<Axis> axes = axes_of(grid);
  const Axis &axis = best_axis(result.simulated, axes);
  const Curve curve = curve_of(result.simulated, axis);
  double difference = 0, all = 0;
  for (const WorkgroupTime &time : others) {
    difference += std::abs(curve.at(axis.coordinate(time.number)).instructions - double(time.instructions));
    all += double(time.instructions);
  }
  return all == 0 ? 0 : 100 * difference / all;
}

} // namespace sluice::emulator::timing
