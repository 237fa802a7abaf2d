//===- memory_watch.h - how often launches touch the dwords of chosen ranges ----------------------------===//
//
// Tests and measurements state what a kernel loads and stores ("each byte of the cache once"). A watched
// range has a load count and a store count for each of its dwords.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace sluice::emulator {

/// Immutable: a launch keeps the one it started with. The caller owns the counts' memory.
class MemoryWatch {
public:
  struct Range {
    uint64_t start, end; // multiples of 4
    uint32_t *loads;     // one count per dword, nullable
    uint32_t *stores;    // the same
  };

  /// The ranges do not overlap.
  explicit MemoryWatch(std::vector<Range> ranges) : watched(std::move(ranges)) {}

  const std::vector<Range> &ranges() const { return watched; }

  /// Counts accesses of `bytes` bytes at the addresses of the lanes. Thread-safe.
  void enter(const uint64_t *addresses, uint64_t lanes, uint32_t bytes, bool load, bool store) const;

private:
  std::vector<Range> watched;
};

} // namespace sluice::emulator
