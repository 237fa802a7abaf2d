//===- stream_races.cpp - work of several streams on the same memory ------------------------------------===//
#include "emulator/hip/stream_races.h"

#include <algorithm>

#include "emulator/hip/device.h"
#include "emulator/hip/host_calls.h"
#include "emulator/hip/thread_state.h"

namespace sluice::emulator::hip {

namespace {

// Work remembered while no thread waits; the oldest is dropped first.
constexpr size_t most_remembered = 4096;

bool conflict(MemoryUse::Kind a, MemoryUse::Kind b) {
  if (a == b) return a == MemoryUse::Kind::write; // nothing is allocated or freed twice
  return true;
}

/// The first two uses of the same bytes that must be ordered.
std::pair<const MemoryUse *, const MemoryUse *> find_conflict(const std::vector<MemoryUse> &a,
                                                              const std::vector<MemoryUse> &b) {
  size_t first = 0;
  for (const MemoryUse &use : a) {
    // Ranges of one list may overlap only with others of the same start, so this never goes back far.
    while (first < b.size() && b[first].end <= use.start)
      ++first;
    for (size_t i = first; i < b.size() && b[i].start < use.end; ++i)
      if (b[i].end > use.start && b[i].block == use.block && conflict(use.kind, b[i].kind))
        return {&use, &b[i]};
  }
  return {nullptr, nullptr};
}

const char *verb(MemoryUse::Kind kind) {
  switch (kind) {
  case MemoryUse::Kind::read:
    return "reads";
  case MemoryUse::Kind::write:
    return "writes";
  case MemoryUse::Kind::atomic:
    return "updates";
  case MemoryUse::Kind::allocate:
    return "allocates";
  case MemoryUse::Kind::release:
    return "releases";
  }
  return "uses";
}

} // namespace

uint64_t Clock::of(uint64_t stream) const {
  const auto at = std::lower_bound(entries.begin(), entries.end(), stream,
                                   [](const Entry &entry, uint64_t wanted) { return entry.stream < wanted; });
  return at != entries.end() && at->stream == stream ? at->number : 0;
}

void Clock::raise(uint64_t stream, uint64_t number) {
  const auto at = std::lower_bound(entries.begin(), entries.end(), stream,
                                   [](const Entry &entry, uint64_t wanted) { return entry.stream < wanted; });
  if (at != entries.end() && at->stream == stream)
    at->number = std::max(at->number, number);
  else
    entries.insert(at, {stream, number});
}

void Clock::join(const Clock &other) {
  for (const Entry &entry : other.entries)
    raise(entry.stream, entry.number);
}

StreamRaces &StreamRaces::get() {
  static StreamRaces *const instance = new StreamRaces;
  return *instance;
}

bool StreamRaces::enter(const std::string &name, std::vector<MemoryUse> uses) {
  if (uses.empty()) return false;
  bool freed = false;
  std::sort(uses.begin(), uses.end(),
            [](const MemoryUse &a, const MemoryUse &b) { return a.start < b.start; });
  Done mine{*thread_state.work, name, std::move(uses)};
  const std::lock_guard lock(mutex);
  for (const Done &other : recent) {
    if (mine.work.clock->of(other.work.stream) >= other.work.number ||
        other.work.clock->of(mine.work.stream) >= mine.work.number)
      continue;
    const auto [here, there] = find_conflict(mine.uses, other.uses);
    if (here == nullptr) continue;
    Report report;
    const bool released = here->kind == MemoryUse::Kind::release || there->kind == MemoryUse::Kind::release;
    freed = freed || released;
    report.kind = released ? ReportKind::freed_in_use : ReportKind::stream_race;
    report.set(consequence_of(report.kind, report.level, Device::get().options()));
    report.kernel = name;
    report.message = "in " + mine.work.stream_name + " " + verb(here->kind) + " memory that " + other.name +
                     " in " + other.work.stream_name + " " + verb(there->kind) +
                     ", and neither waits for the other";
    report.address = std::max(here->start, there->start);
    describe_host_calls(report, nullptr);
    Device::get().add_report(std::move(report));
  }
  recent.push_back(std::move(mine));
  if (recent.size() > most_remembered) recent.pop_front();
  return freed;
}

bool StreamRaces::forget(const Clock &before) {
  const std::lock_guard lock(mutex);
  std::erase_if(recent, [&](const Done &done) { return before.of(done.work.stream) >= done.work.number; });
  return recent.empty();
}

bool compares_streams(const Options &options) {
  return thread_state.work != nullptr && options.checks.stream_races;
}

void add_use(std::vector<MemoryUse> &uses, const void *start, size_t bytes, uint64_t block,
             MemoryUse::Kind kind) {
  const auto address = reinterpret_cast<uint64_t>(start);
  if (block != 0) uses.push_back({address, address + bytes, block, kind});
}

} // namespace sluice::emulator::hip
