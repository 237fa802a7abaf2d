//===- half.h - IEEE binary16 to and from float ---------------------------------------------------------===//
//
// Device memory holds Q, K, V and O as 16-bit floats, which C++20 has no type for.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

namespace jargon {

using Half = uint16_t;

inline float to_float(Half half) {
  const uint32_t sign = uint32_t(half & 0x8000) << 16;
  const uint32_t exponent = half >> 10 & 0x1f;
  const uint32_t fraction = half & 0x3ff;
  if (exponent == 0x1f) return std::bit_cast<float>(sign | 0x7f800000 | fraction << 13);
  if (exponent != 0) return std::bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13);
  const float magnitude = std::ldexp(float(fraction), -24);
  return sign ? -magnitude : magnitude;
}

/// Rounds to nearest, ties to even; what is too large becomes infinity.
inline Half to_half(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const Half sign = Half(bits >> 16 & 0x8000);
  if (std::isnan(value)) return Half(sign | 0x7e00);
  const float magnitude = std::fabs(value);
  if (magnitude >= 65520.0f) return Half(sign | 0x7c00);
  if (magnitude == 0) return sign;
  // One unit in the last place of the result; below 2^-14 halves are spaced evenly.
  int exponent = 0;
  std::frexp(magnitude, &exponent);
  const int unit = std::max(exponent - 11, -24);
  const uint32_t units = uint32_t(std::nearbyint(std::ldexp(magnitude, -unit)));
  // `units` is fraction with its leading one; adding it to the exponent field carries where it rounds up.
  return Half(sign | ((uint32_t(unit + 24) << 10) + units));
}

} // namespace jargon
