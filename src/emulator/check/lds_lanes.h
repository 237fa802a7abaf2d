//===- lds_lanes.h - the LDS accesses of some lanes -----------------------------------------------------===//
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "emulator/isa/op.h"

namespace sluice::emulator {

/// Addresses of whole dwords, [low, high).
struct LdsRange {
  uint32_t low = ~0u;
  uint32_t high = 0;

  void add(uint32_t address, uint32_t bytes) {
    low = std::min(low, address & ~3u);
    high = std::max(high, (address + bytes + 3) & ~3u);
  }
  void add(const LdsRange &other) {
    low = std::min(low, other.low);
    high = std::max(high, other.high);
  }
  bool meets(const LdsRange &other) const { return low < other.high && other.low < high; }
};

/// The range of whole dwords at an aligned address.
constexpr LdsRange dwords_at(uint32_t address, uint32_t bytes) {
  return {address, address + bytes};
}
constexpr LdsRange dword_range(uint32_t dword) {
  return dwords_at(dword * 4, 4);
}

/// One access of each of some lanes, of as many bytes each.
struct LdsLanes {
  LdsLanes(const uint32_t *addresses, uint64_t lanes, uint32_t bytes)
      : addresses(addresses), lanes(lanes), bytes(bytes) {
    auto low = int32_t(~0u >> 1);
    int32_t high = 0;
    uint32_t all = bytes;
    auto enter = [&](uint32_t lane) {
      low = std::min(low, int32_t(addresses[lane]));
      high = std::max(high, int32_t(addresses[lane]));
      all |= addresses[lane];
    };
    // The usual case without a branch per lane.
    if (lanes == all_lanes)
      for (uint32_t lane = 0; lane < wave_lanes; ++lane)
        enter(lane);
    else
      for (uint64_t left = lanes; left != 0; left &= left - 1)
        enter(uint32_t(std::countr_zero(left)));
    if (lanes != 0) range.add(uint32_t(low), bytes);
    if (lanes != 0) range.add(uint32_t(high), bytes);
    whole_dwords = all % 4 == 0;
  }

  const uint32_t *addresses;
  uint64_t lanes;
  uint32_t bytes;
  LdsRange range; // has all accesses
  bool whole_dwords;
};

} // namespace sluice::emulator
