//===- memory_levels.h - vector cache, L2, Infinity Cache and HBM ---------------------------------------===//
//
// Each level has tags, which decide what it holds, a bandwidth, which requests queue for, and a latency, from
// the instruction's issue to the data's arrival in its registers. Of what compute units share, the simulated
// ones get their even share of the bandwidth and all of the capacity.
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

/// Which lines a cache holds; the least recently used of a set leaves.
class CacheTags {
public:
  CacheTags(uint64_t bytes, uint32_t line_bytes, uint32_t ways);

  struct Line {
    uint64_t tag; // 0: none
    double ready; // when its data is there
  };
  /// The line, now the most recently used of its set; `hit` says whether it was there.
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

/// An even share of a bandwidth. Others leave theirs unused at times, so that a compute unit that has been
/// quiet may be served at once for a while.
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
  /// Of what has been asked for, what is not moved by `clk`: the rest was moved at no more than the share.
  double waiting_bytes(double clk) const { return free > clk ? (free - clk) * bytes_per_clk : 0; }

private:
  double bytes_per_clk;
  double burst_clk;
  double free = 0; // time before the launch gives no credit
};

/// What compute units share.
class SharedLevels {
public:
  /// For `xcds` simulated XCDs of a device, with `compute_units` simulated compute units on each.
  SharedLevels(uint32_t compute_units, uint32_t xcds, const Device &device);

  /// A line that an instruction issued at `clk` on an XCD wants; answers when it is in the registers.
  double read(uint32_t xcd, uint64_t line, double clk);
  /// Bytes of a line; answers when the store counts as done. Stores are ahead of memory by no more than L2
  /// holds.
  double write(uint32_t xcd, uint64_t line, uint32_t bytes, double clk);
  /// What has been moved by `clk`: not what stores have left in L2.
  MemoryTraffic moved(double clk) const;

  MemoryTraffic traffic; // asked for

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
  const double store_lead_clk; // until memory has taken what L2 holds
};

/// The address path and the vector cache of a compute unit, and its scalar cache.
class VectorMemory {
public:
  VectorMemory(SharedLevels &shared, uint32_t xcd);

  /// When the path can take an instruction on.
  uint64_t accepts() const;
  struct Result {
    Occupation path;
    uint64_t done; // when vmcnt may count it no more
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
