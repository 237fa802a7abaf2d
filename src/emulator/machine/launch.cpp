//===- launch.cpp - a grid of workgroups over the host's threads ----------------------------------------===//
//
// Each thread takes the next workgroup and runs it to its end. One that sleeps, or runs for very long, may be
// waiting for another: the thread then starts the next one too, and they take turns. The workgroups of a
// cooperative launch take turns from the start.
//
//===----------------------------------------------------------------------------------------------------===//
#include <algorithm>
#include <exception>
#include <numeric>
#include <thread>

#include "emulator/machine/launch_setup.h"
#include "emulator/machine/workgroup.h"

namespace sluice::emulator {

namespace {

constexpr uint64_t slice_instructions = 1 << 16;
// If workgroups are expected to wait for each other.
constexpr uint64_t cooperative_slice_instructions = 1 << 10;
// Turns after which a workgroup that never sleeps is nevertheless assumed to wait for another one.
constexpr uint32_t turns_of_patience = 256;
// Per host thread. The device itself holds a few workgroups per compute unit, if they fill one, on 304 units.
constexpr size_t most_resident = 1024;
constexpr uint64_t xcd_count = 8; // workgroups go to the dies in turn

class Dispatcher {
public:
  explicit Dispatcher(LaunchState &launch)
      : launch(launch), total(uint64_t(launch.grid[0]) * launch.grid[1] * launch.grid[2]) {}

  Counters run(uint32_t threads) {
    threads = uint32_t(std::min<uint64_t>(threads, total));
    share = (total + threads - 1) / threads;
    std::vector<std::jthread> others;
    for (uint32_t i = 1; i < threads; ++i)
      others.emplace_back([this] { work(); });
    work();
    others.clear();
    if (failure) std::rethrow_exception(failure);
    return counters;
  }

private:
  void work() {
    Counters mine;
    try {
      work_until_done(mine);
    } catch (...) {
      const std::lock_guard lock(mutex);
      failure = std::current_exception();
      launch.stop = true;
    }
    const std::lock_guard lock(mutex);
    counters += mine;
  }

  struct Resident {
    std::unique_ptr<Workgroup> workgroup;
    uint32_t turns = 0;
    bool waits = false; // perhaps for a workgroup that has not started
  };

  void work_until_done(Counters &mine) {
    std::vector<Resident> active;
    std::vector<std::unique_ptr<Workgroup>> idle;
    bool more = true;
    // In a cooperative launch all workgroups begin at once, a part of them on each thread.
    while (launch.sync && more && active.size() < share)
      more = start_next(active, idle);
    const uint64_t slice = launch.sync ? cooperative_slice_instructions : slice_instructions;
    while (!launch.stop && (more || !active.empty())) {
      const bool all_wait =
          std::all_of(active.begin(), active.end(), [](const Resident &r) { return r.waits; });
      if (more && all_wait && active.size() < most_resident) more = start_next(active, idle);
      for (size_t i = 0; i < active.size() && !launch.stop;) {
        Resident &resident = active[i];
        const Workgroup::Progress progress = resident.workgroup->run(slice);
        if (progress != Workgroup::Progress::ended) {
          resident.waits = progress == Workgroup::Progress::sleeping || ++resident.turns >= turns_of_patience;
          ++i;
          continue;
        }
        if (launch.options->workgroups_ended)
          launch.options->workgroups_ended->fetch_add(1, std::memory_order_relaxed);
        idle.push_back(std::move(resident.workgroup));
        active.erase(active.begin() + ptrdiff_t(i));
      }
    }
    for (const Resident &resident : active)
      mine += resident.workgroup->counters;
    for (const auto &workgroup : idle)
      mine += workgroup->counters;
  }

  /// The workgroup that starts at a position of the schedule.
  uint64_t number_at(uint64_t position) const {
    switch (launch.options->workgroup_schedule) {
    case WorkgroupSchedule::ascending:
      return position;
    case WorkgroupSchedule::descending:
      return total - 1 - position;
    case WorkgroupSchedule::by_xcd: {
      // The first total % 8 dies have one workgroup more than the others.
      const uint64_t larger = total % xcd_count;
      const uint64_t each = total / xcd_count;
      const uint64_t in_larger = larger * (each + 1);
      if (position < in_larger) return position / (each + 1) + position % (each + 1) * xcd_count;
      return larger + (position - in_larger) / each + (position - in_larger) % each * xcd_count;
    }
    case WorkgroupSchedule::random: {
      // A step that has no divisor in common with the total visits each number once.
      uint64_t step = (launch.options->seed * 0x9e3779b97f4a7c15 >> 16) % total | 1;
      while (std::gcd(step, total) != 1)
        ++step;
      return (position % total * (step % total) + launch.options->seed % total) % total;
    }
    }
    return position;
  }

  bool start_next(std::vector<Resident> &active, std::vector<std::unique_ptr<Workgroup>> &idle) {
    const uint64_t position = next.fetch_add(1);
    if (position >= total) return false;
    const uint64_t number = number_at(position);
    if (idle.empty()) idle.push_back(std::make_unique<Workgroup>(launch));
    active.push_back({std::move(idle.back())});
    idle.pop_back();
    const std::array<uint32_t, 3> id{uint32_t(number % launch.grid[0]),
                                     uint32_t(number / launch.grid[0] % launch.grid[1]),
                                     uint32_t(number / launch.grid[0] / launch.grid[1])};
    active.back().workgroup->start(id, uint32_t(number));
    return true;
  }

  LaunchState &launch;
  const uint64_t total;
  uint64_t share = 0; // workgroups per thread, in a cooperative launch
  std::atomic<uint64_t> next = 0;
  std::mutex mutex;
  Counters counters;
  std::exception_ptr failure;
};

} // namespace

LaunchResult launch(const Program &program, std::string_view kernel, std::array<uint32_t, 3> grid,
                    std::array<uint32_t, 3> block, uint32_t dynamic_lds_bytes,
                    std::span<const std::byte> kernarg, const Memory &memory, const Options &options) {
  LaunchSetup setup(program, kernel, grid, block, dynamic_lds_bytes, kernarg, memory, options);
  LaunchResult result;
  result.kernel = kernel;
  const uint32_t threads =
      options.threads != 0 ? options.threads : std::max(1u, std::thread::hardware_concurrency());
  result.counters = Dispatcher(setup.state()).run(threads);
  result.counters.launches = 1;
  result.reports = setup.reports();
  result.reports_dropped = setup.reports_dropped();
  result.fidelity = setup.fidelity_note();
  if (options.list_memory_uses) result.uses = setup.uses();
  return result;
}

const Report *LaunchResult::failure() const {
  const auto found = std::ranges::find_if(reports, &Report::fails);
  return found == reports.end() ? nullptr : &*found;
}

Counters &Counters::operator+=(const Counters &other) {
  wave_instructions += other.wave_instructions;
  waves += other.waves;
  workgroups += other.workgroups;
  mfma_instructions += other.mfma_instructions;
  for (size_t kind = 0; kind < mfma_by_kind.size(); ++kind)
    mfma_by_kind[kind] += other.mfma_by_kind[kind];
  lds_bank_conflicts += other.lds_bank_conflicts;
  buffer_lanes_out_of_range += other.buffer_lanes_out_of_range;
  launches += other.launches;
  clock_end = std::max(clock_end, other.clock_end);
  return *this;
}

} // namespace sluice::emulator
