//===- stream_races.h - work of several streams on the same memory --------------------------------------===//
//
// Every piece of work has a vector clock. For each stream, it holds the last piece that comes before this
// one: by the stream's order, events, the null stream's rule, graphs, or because the host had seen it
// complete when it submitted this one. Two pieces are unordered if neither is in the other's clock, whether
// or not they ran at the same time. All host threads count as one, because their mutual order cannot be
// observed.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "emulator/machine/machine.h"

namespace sluice::emulator::hip {

/// For each stream, the number of its pieces of work that come before.
class Clock {
public:
  uint64_t of(uint64_t stream) const;
  void raise(uint64_t stream, uint64_t number);
  void join(const Clock &other);
  size_t size() const { return entries.size(); }

private:
  struct Entry {
    uint64_t stream;
    uint64_t number;
  };
  std::vector<Entry> entries; // sorted
};

/// A piece of running work.
struct WorkIdentity {
  uint64_t stream = 0;
  uint64_t number = 0;
  std::string stream_name;
  std::shared_ptr<const Clock> clock;
};

class StreamRaces {
public:
  static StreamRaces &get();

  /// Enters what the work running on this thread has touched, and its name in reports, which go to the
  /// device. True if unordered work frees some of it.
  bool enter(const std::string &name, std::vector<MemoryUse> uses);
  /// Forgets work before everything that can still run. True if nothing is left.
  bool forget(const Clock &before);

private:
  struct Done {
    WorkIdentity work;
    std::string name;
    std::vector<MemoryUse> uses; // sorted by address
  };
  std::mutex mutex;
  std::deque<Done> recent;
};

/// Whether the memory that the running work touches must be compared.
bool compares_streams(const Options &options);
/// Adds the bytes, unless they are in no block (0).
void add_use(std::vector<MemoryUse> &uses, const void *start, size_t bytes, uint64_t block,
             MemoryUse::Kind kind);

} // namespace sluice::emulator::hip
