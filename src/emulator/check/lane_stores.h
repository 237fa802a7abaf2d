//===- lane_stores.h - lanes of one instruction that store to one place ---------------------------------===//
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "emulator/check/wave_checks.h"

namespace sluice::emulator {

template <typename Address> struct DifferentStores {
  uint32_t lane, other; // other is the lower lane
  Address address;
};

/// The first lane that stores another value to a byte than a lower lane does.
template <typename Address>
std::optional<DifferentStores<Address>> find_different_stores(const Address *addresses, uint64_t lanes,
                                                              uint32_t bytes, const StoredRows &stored) {
  for (uint64_t later = lanes & (lanes - 1); later != 0; later &= later - 1) {
    const uint32_t lane = low_lane(later);
    const Address address = addresses[lane];
    for (uint64_t earlier = lanes & ((later & (0 - later)) - 1); earlier != 0; earlier &= earlier - 1) {
      const uint32_t other = low_lane(earlier);
      const Address end = std::min(address, addresses[other]) + bytes;
      for (Address at = std::max(address, addresses[other]); at < end; ++at)
        if (stored.byte(lane, uint32_t(at - address)) != stored.byte(other, uint32_t(at - addresses[other])))
          return DifferentStores<Address>{lane, other, at};
    }
  }
  return std::nullopt;
}

} // namespace sluice::emulator
