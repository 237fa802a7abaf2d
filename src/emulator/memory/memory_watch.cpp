//===- memory_watch.cpp - how often launches touch the dwords of chosen ranges --------------------------===//
#include "emulator/memory/memory_watch.h"

#include <algorithm>
#include <atomic>
#include <bit>

namespace sluice::emulator {

void MemoryWatch::enter(const uint64_t *addresses, uint64_t lanes, uint32_t bytes, bool load,
                        bool store) const {
  const auto count = [](uint32_t *counts, uint64_t dword) {
    if (counts != nullptr) std::atomic_ref(counts[dword]).fetch_add(1, std::memory_order_relaxed);
  };
  for (uint64_t left = lanes; left != 0; left &= left - 1) {
    const uint64_t address = addresses[std::countr_zero(left)];
    for (const Range &range : watched) {
      const uint64_t first = std::max(address & ~uint64_t{3}, range.start);
      const uint64_t end = std::min(address + bytes, range.end);
      for (uint64_t at = first; at < end; at += 4) {
        if (load) count(range.loads, (at - range.start) / 4);
        if (store) count(range.stores, (at - range.start) / 4);
      }
    }
  }
}

} // namespace sluice::emulator
