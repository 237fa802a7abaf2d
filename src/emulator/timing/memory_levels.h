//===- memory_levels.h - vector cache, L2, Infinity Cache and HBM ---------------------------------------===//
//
// Each level has tags that decide what it holds, a bandwidth that requests queue for, and a latency from the
// instruction's issue to the data's arrival in its registers. The simulated
// compute units get an even share of the bandwidth, and all of the capacity, of what compute units share.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <cstdlib>
#include <memory>
#include <vector>

#include "emulator/timing/access_addresses.h"
#include "emulator/timing/levels.h"
#include "emulator/timing/observer.h"
#include "emulator/timing/op_timing.h"

namespace sluice::emulator::timing {

/// The lines that a cache holds; each set replaces its least recently used line.
class CacheTags {
public:
  CacheTags(uint64_t bytes, uint32_t line_bytes, uint32_t ways);

  struct Line {
    uint64_t tag; // 0: empty
    double ready; // when its data arrives
  };
  /// The line, now the most recently used of its set; `hit`: the cache held it.
  Line &touch(uint64_t line, bool &hit);
  void clear();

private:
  struct Release {
    void operator()(Line *memory) const { std::free(memory); }
  };
  const uint64_t sets;
  const uint32_t ways;
  std::unique_ptr<Line[], Release> lines; // set after set, most recently used first
};

/// An even share of a bandwidth. Others do not always use theirs, so a compute unit that has been quiet may
/// be served at once for a while.
class Queue {
public:
  Queue(double bytes_per_clk, double burst_clk) : bytes_per_clk(bytes_per_clk), burst_clk(burst_clk) {}
  /// When a request that arrives at `clk` is served.
  double serve(double clk, double bytes) {
    if (free < clk - burst_clk) free = clk - burst_clk;
    const double start = clk > free ? clk : free;
    free += bytes / bytes_per_clk;
    return start;
  }
  /// The requested bytes that have not been moved by `clk`: the others were moved at the share's rate at
  /// most.
  double waiting_bytes(double clk) const { return free > clk ? (free - clk) * bytes_per_clk : 0; }

private:
  double bytes_per_clk;
  double burst_clk;
  double free = 0; // time before the launch gives no credit
};

/// Levels that compute units share.
class SharedLevels {
public:
  /// For `xcds` simulated XCDs of a device, with `compute_units` simulated compute units on each.
  SharedLevels(uint32_t compute_units, uint32_t xcds, const Device &device);

  /// Reads a line for an instruction issued at `clk` on an XCD; returns when it is in the registers.
  double read(uint32_t xcd, uint64_t line, double clk);
  /// Writes bytes of a line; returns when the store counts as done. Stores are ahead of memory by L2's
  /// capacity at most.
  double write(uint32_t xcd, uint64_t line, uint32_t bytes, double clk);
  /// The bytes moved by `clk`, without those that stores have left in L2.
  MemoryTraffic moved(double clk) const;

  MemoryTraffic traffic; // bytes requested

private:
  struct SecondLevel {
    CacheTags tags;
    Queue queue;
  };
  std::vector<SecondLevel> l2; // by XCD
  CacheTags mall;
  Queue mall_queue;
  Queue hbm_queue;
  const uint32_t mall_latency;
  const uint32_t hbm_latency;
  const double store_lead_clk; // time that memory takes for the capacity of L2
};

/// The address path and the vector cache of a compute unit, and its scalar cache.
class VectorMemory {
public:
  VectorMemory(SharedLevels &shared, uint32_t xcd);

  /// When the path can accept an instruction.
  uint64_t accepts() const;
  struct Result {
    Occupation path;
    uint64_t done; // when vmcnt no longer counts it
  };
  /// An instruction issued at `clk`.
  Result access(const LaneAccess<uint64_t> &access, Transfer transfer, uint64_t clk);
  void invalidate() { tags.clear(); }
  uint64_t scalar_load(uint64_t address, uint64_t clk);

  uint64_t busy_clk = 0;

private:
  SharedLevels &shared;
  const uint32_t xcd;
  CacheTags tags;
  CacheTags scalar_tags;
  uint64_t path_free = 0;
};

} // namespace sluice::emulator::timing
