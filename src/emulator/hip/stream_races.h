//===- stream_races.h - work of several streams on the same memory --------------------------------------===//
//
// Every piece of work has a vector clock: of each stream, the last piece that comes before it by the stream's
// order, events, the null stream's rule, graphs, or because the host had seen it complete when it submitted
// this one. Two pieces of which neither is in the other's clock are in no order, whether or not they ever met
// in time. All threads of the host count as one, since what orders them cannot be seen.
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

/// Of each stream, how many of its pieces of work come before.
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

/// A piece of work that runs.
struct WorkIdentity {
  uint64_t stream = 0;
  uint64_t number = 0;
  std::string stream_name;
  std::shared_ptr<const Clock> clock;
};

class StreamRaces {
public:
  static StreamRaces &get();

  /// What the work that runs on this thread has touched, and how a report calls it. Reports go to the device.
  /// True if some of it is freed in no order with this.
  bool enter(const std::string &name, std::vector<MemoryUse> uses);
  /// Forgets what comes before all that will ever run. True if nothing is left.
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

/// Whether what the running work touches is to be compared.
bool compares_streams(const Options &options);
/// The bytes, unless they lie in no block (0).
void add_use(std::vector<MemoryUse> &uses, const void *start, size_t bytes, uint64_t block,
             MemoryUse::Kind kind);

} // namespace sluice::emulator::hip
