//===- released_atomics.h - what waves knew when they released at an atomic -----------------------------===//
//
// Most atomics release, and few acquire. So a release only notes the wave's clock, once for all dwords of a
// line that the instruction touches. An acquire joins what was noted at its dwords.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <array>
#include <mutex>
#include <span>
#include <unordered_map>
#include <vector>

#include "emulator/check/footprint.h"
#include "emulator/check/vector_clock.h"

namespace sluice::emulator {

/// What a wave publishes: what it has acquired, and what it knows of its own workgroup.
struct PublishedClock {
  VectorClock others;
  uint32_t first_wave = 0; // number in the launch
  std::vector<Moments> group;

  void join_into(VectorClock &clock) const;
};

/// Thread-safe.
class ReleasedAtomics {
public:
  /// `wave` is the releasing wave's number in the launch. What it releases later includes `clock`.
  void release(std::span<const LinePart> parts, uint32_t wave, const Shared<PublishedClock> &clock);
  /// Adds what was released there.
  void acquire(const LinePart &part, VectorClock &known);

private:
  static constexpr uint32_t several = ~0u;

  /// A clock that was released at some dwords of a line: one wave's, or several joined.
  struct Release {
    uint64_t dwords;
    uint32_t wave; // or `several`
    Shared<PublishedClock> published;
    VectorClock joined;

    void join_into(VectorClock &clock) const {
      if (published)
        published->join_into(clock);
      else
        clock.join(joined);
    }
  };
  using Line = std::vector<Release>;
  struct Shard {
    std::mutex mutex;
    std::unordered_map<uint64_t, Line> lines;
  };
  Shard &shard_of(uint64_t line) { return shards[line % shards.size()]; }
  static void merge_equal(Line &line);
  static void split_by_dword(Line &line);

  std::array<Shard, 64> shards;
};

} // namespace sluice::emulator
