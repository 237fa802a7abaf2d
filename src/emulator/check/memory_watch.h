//===- memory_watch.h - how often launches touch the dwords of chosen ranges ----------------------------===//
//
// What a kernel loads and stores is a property that tests and measurements state ("each byte of the cache
// once"): whoever watches a range gets a count for each of its dwords.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace sluice::emulator {

/// Immutable: a launch keeps the one it started with. Counts are the caller's memory.
class MemoryWatch {
public:
  struct Range {
    uint64_t start, end; // multiples of 4
    uint32_t *loads;     // one per dword, nullable
    uint32_t *stores;    // likewise
  };

  /// The ranges do not overlap.
  explicit MemoryWatch(std::vector<Range> ranges) : watched(std::move(ranges)) {}

  const std::vector<Range> &ranges() const { return watched; }

  /// Counts accesses of `bytes` bytes at the addresses of the lanes. May run at the same time as others.
  void enter(const uint64_t *addresses, uint64_t lanes, uint32_t bytes, bool load, bool store) const;

private:
  std::vector<Range> watched;
};

} // namespace sluice::emulator
