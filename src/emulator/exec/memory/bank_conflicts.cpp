//===- bank_conflicts.cpp - LDS cycles lost to bank conflicts -------------------------------------------===//
//
// Groups as measured on CDNA3: 32 lanes for 4-byte accesses, 16 for 8-byte ones, and eight lanes in the order
// of the table below for 16-byte ones. 12-byte accesses use the groups of 16-byte ones.
//
//===----------------------------------------------------------------------------------------------------===//
#include "emulator/exec/memory/bank_conflicts.h"

#include <algorithm>

namespace sluice::emulator {

namespace {

constexpr uint32_t banks = 32;

// Lanes 0-3 go with 20-23, 4-7 with 16-19, 8-11 with 28-31, 12-15 with 24-27; the upper 32 lanes are grouped
// alike.
constexpr uint8_t quarter_order[8] = {0, 5, 1, 4, 2, 7, 3, 6};

uint32_t lane_of(uint32_t position, uint32_t group_lanes) {
  if (group_lanes != 8) return position;
  return (position & 32) + quarter_order[position % 32 / 4] * 4 + position % 4;
}

/// A fast check for the usual case.
bool one_dword_per_bank(const uint32_t *addresses, uint64_t lanes, uint32_t dwords, uint32_t first,
                        uint32_t group_lanes) {
  uint32_t used = 0;
  uint32_t held[banks];
  for (uint32_t i = 0; i < group_lanes; ++i) {
    const uint32_t lane = lane_of(first + i, group_lanes);
    if ((lanes >> lane & 1) == 0) continue;
    for (uint32_t d = 0; d < dwords; ++d) {
      const uint32_t dword = addresses[lane] / 4 + d;
      const uint32_t bank = dword % banks;
      if ((used >> bank & 1) != 0 && held[bank] != dword) return false;
      used |= 1u << bank;
      held[bank] = dword;
    }
  }
  return true;
}

} // namespace

uint32_t count_bank_conflicts(const uint32_t *addresses, uint64_t lanes, uint32_t bytes) {
  const uint32_t dwords = std::max(bytes, 4u) / 4;
  const uint32_t group_lanes = dwords == 1 ? 32 : dwords == 2 ? 16 : 8;
  uint32_t conflicts = 0;
  for (uint32_t first = 0; first < 64; first += group_lanes) {
    if (one_dword_per_bank(addresses, lanes, dwords, first, group_lanes)) continue;
    // The distinct dwords of each bank.
    uint32_t seen[banks][banks];
    uint32_t count[banks] = {};
    uint32_t deepest = 1;
    for (uint32_t i = 0; i < group_lanes; ++i) {
      const uint32_t lane = lane_of(first + i, group_lanes);
      if ((lanes >> lane & 1) == 0) continue;
      for (uint32_t d = 0; d < dwords; ++d) {
        const uint32_t dword = addresses[lane] / 4 + d;
        const uint32_t bank = dword % banks;
        uint32_t *known = seen[bank];
        if (std::find(known, known + count[bank], dword) != known + count[bank]) continue;
        known[count[bank]++] = dword;
        deepest = std::max(deepest, count[bank]);
      }
    }
    conflicts += deepest - 1;
  }
  return conflicts;
}

} // namespace sluice::emulator
