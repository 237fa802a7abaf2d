//===- rotary.h - rotary positions, on the host ---------------------------------------------------------===//
//
// sluice_cache_append rotates K on its way into a paged cache, and Q is the caller's to rotate. Here both are
// on the host anyway, so both are rotated there: in float, from and to 16-bit elements, rounded once.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "../jargon_lm/half.h"

#include <sluice/sluice.h>

namespace sluice_ort {

inline float to_float(uint32_t type, uint16_t bits) {
  return type == SLUICE_F16 ? jargon::to_float(bits) : std::bit_cast<float>(uint32_t(bits) << 16);
}

/// Rounds to nearest, ties to even.
inline uint16_t to_element(uint32_t type, float value) {
  if (type == SLUICE_F16) return jargon::to_half(value);
  if (std::isnan(value)) return 0x7fc0;
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  return uint16_t((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/// The caches of cosines and sines, [positions][pairs], and which elements of a row make a pair.
struct Rotary {
  uint32_t type = 0; // of the caches and the rows
  const uint16_t *cosines = nullptr, *sines = nullptr;
  int64_t positions = 0, pairs = 0;
  bool interleaved = false; // 2e and 2e + 1, else e and e + pairs

  /// Rotates the first 2 * pairs elements of a row and copies the rest. `to` may be `from`.
  void rotate(const uint16_t *from, uint16_t *to, int64_t head_size, int64_t position) const {
    for (int64_t pair = 0; pair < pairs; ++pair) {
      const int64_t first = interleaved ? 2 * pair : pair, second = interleaved ? first + 1 : first + pairs;
      const float cosine = to_float(type, cosines[position * pairs + pair]);
      const float sine = to_float(type, sines[position * pairs + pair]);
      const float x = to_float(type, from[first]), y = to_float(type, from[second]);
      to[first] = to_element(type, x * cosine - y * sine);
      to[second] = to_element(type, y * cosine + x * sine);
    }
    std::copy(from + 2 * pairs, from + head_size, to + 2 * pairs);
  }
};

} // namespace sluice_ort
