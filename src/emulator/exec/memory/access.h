//===- access.h - moving values between lanes and bytes -------------------------------------------------===//
#pragma once

#include <cstdint>
#include <cstring>

#include "emulator/isa/op.h"

namespace sluice::emulator {

/// One lane's value from memory into its place in the rows.
template <uint32_t bytes>
inline void load_element(uint32_t *rows, uint32_t lane, const uint8_t *from, bool sign) {
  if constexpr (bytes == 1) {
    rows[lane] = sign ? uint32_t(int32_t(int8_t(*from))) : *from;
  } else if constexpr (bytes == 2) {
    uint16_t value;
    std::memcpy(&value, from, 2);
    rows[lane] = sign ? uint32_t(int32_t(int16_t(value))) : value;
  } else {
    uint32_t values[bytes / 4];
    std::memcpy(values, from, bytes);
    for (uint32_t r = 0; r < bytes / 4; ++r)
      rows[r * wave_lanes + lane] = values[r];
  }
}

template <uint32_t bytes>
inline void store_element(uint8_t *to, const uint32_t *rows, uint32_t lane, uint32_t shift) {
  if constexpr (bytes < 4) {
    const uint32_t value = rows[lane] >> shift;
    std::memcpy(to, &value, bytes);
  } else {
    uint32_t values[bytes / 4];
    for (uint32_t r = 0; r < bytes / 4; ++r)
      values[r] = rows[r * wave_lanes + lane];
    std::memcpy(to, values, bytes);
  }
}

/// Passes the number of bytes of an access as a constant.
template <class F> inline void with_bytes(uint32_t bytes, F &&call) {
  switch (bytes) {
  case 1:
    return call.template operator()<1>();
  case 2:
    return call.template operator()<2>();
  case 4:
    return call.template operator()<4>();
  case 8:
    return call.template operator()<8>();
  case 12:
    return call.template operator()<12>();
  default:
    return call.template operator()<16>();
  }
}

/// Reads the lanes of `allowed`; the other lanes of `lanes` get 0. `address(lane)` is a lane's address.
template <class Address>
inline void gather(uint32_t *rows, uint64_t lanes, uint64_t allowed, uint32_t bytes, bool sign,
                   Address &&address) {
  with_bytes(bytes, [&]<uint32_t count>() {
    if ((lanes & allowed) == all_lanes) {
      for (uint32_t lane = 0; lane < wave_lanes; ++lane)
        load_element<count>(rows, lane, address(lane), sign);
      return;
    }
    for (uint32_t lane = 0; lane < wave_lanes; ++lane) {
      if ((lanes >> lane & 1) == 0) continue;
      if ((allowed >> lane & 1) != 0)
        load_element<count>(rows, lane, address(lane), sign);
      else
        for (uint32_t r = 0; r < (count + 3) / 4; ++r)
          rows[r * wave_lanes + lane] = 0;
    }
  });
}

template <class Address>
inline void scatter(const uint32_t *rows, uint64_t lanes, uint32_t bytes, uint32_t shift, Address &&address) {
  with_bytes(bytes, [&]<uint32_t count>() {
    for (uint32_t lane = 0; lane < wave_lanes; ++lane)
      if ((lanes >> lane & 1) != 0) store_element<count>(address(lane), rows, lane, shift);
  });
}

/// Copies some lanes of rows.
inline void copy_lanes(uint32_t *to, const uint32_t *from, uint32_t rows, uint64_t lanes) {
  for (uint32_t r = 0; r < rows; ++r)
    for (uint32_t lane = 0; lane < wave_lanes; ++lane)
      if ((lanes >> lane & 1) != 0) to[r * wave_lanes + lane] = from[r * wave_lanes + lane];
}

/// Shifts 16-bit values to where registers hold them. The chip's registers have ECC, so a 16-bit load writes
/// all of its register, and the other half becomes 0.
inline void place_half(uint32_t *row, uint64_t lanes, HalfSelect half) {
  for (uint32_t lane = 0; lane < wave_lanes; ++lane)
    if ((lanes >> lane & 1) != 0) row[lane] = half == HalfSelect::low ? row[lane] & 0xffff : row[lane] << 16;
}

} // namespace sluice::emulator
