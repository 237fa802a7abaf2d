//===- numbers.h - 8- and 16-bit floats for oracles, independent of src/support -------------------------===//
//
// An oracle must not share code with what it judges: these use exact double arithmetic and the definition of
// the formats (f16: 11 significant bits, exponents down to 2^-24; bf16: 8, down to 2^-133; E4M3FNUZ: 4, down
// to 2^-10, and E5M2FNUZ: 3, down to 2^-17, no infinity and one NaN).
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace sluice::conformance {

struct NumberFormat {
  int significand_bits; // including the hidden one
  int exponent_bits;
  uint16_t quiet_nan;

  int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  int stored_bits() const { return significand_bits - 1; }
  /// The spacing of the subnormals is 2 to this power.
  int lowest_exponent() const { return 1 - bias() - stored_bits(); }
};

inline constexpr NumberFormat f16_format = {11, 5, 0x7e00};
inline constexpr NumberFormat bf16_format = {8, 8, 0x7fc0};

inline double decode(const NumberFormat &format, uint16_t bits) {
  const int exponent = bits >> format.stored_bits() & ((1 << format.exponent_bits) - 1);
  const int fraction = bits & ((1 << format.stored_bits()) - 1);
  double magnitude = 0;
  if (exponent == (1 << format.exponent_bits) - 1)
    magnitude = fraction ? std::numeric_limits<double>::quiet_NaN() : std::numeric_limits<double>::infinity();
  else if (exponent == 0)
    magnitude = std::ldexp(fraction, format.lowest_exponent());
  else
    magnitude = std::ldexp(fraction + (1 << format.stored_bits()), exponent - 1 + format.lowest_exponent());
  return bits & 0x8000 ? -magnitude : magnitude;
}

/// Nearest, ties to even.
inline uint16_t encode(const NumberFormat &format, double value) {
  if (std::isnan(value)) return format.quiet_nan;
  const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const uint16_t infinity = uint16_t(((1 << format.exponent_bits) - 1) << format.stored_bits());
  if (std::isinf(value)) return sign | infinity;
  if (value == 0) return sign;
  int exponent = 0;
  std::frexp(value, &exponent);
  const int unit = std::max(exponent - format.significand_bits, format.lowest_exponent());
  const auto units = uint32_t(std::nearbyint(std::ldexp(std::fabs(value), -unit)));
  const uint32_t bits = (uint32_t(unit - format.lowest_exponent()) << format.stored_bits()) + units;
  return sign | uint16_t(std::min<uint32_t>(bits, infinity));
}

/// A FNUZ type by its definition, with this many bits of fraction: the number of a byte, NaN for 0x80.
template <int fraction_bits> double decode_fnuz(uint8_t byte) {
  if (byte == 0x80) return std::nan("");
  constexpr int one = 1 << fraction_bits, bias = 1 << (6 - fraction_bits);
  const int exponent = (byte & 0x7f) >> fraction_bits, fraction = byte & (one - 1);
  const double magnitude = exponent == 0 ? std::ldexp(fraction, 1 - bias - fraction_bits)
                                         : std::ldexp(one + fraction, exponent - bias - fraction_bits);
  return byte & 0x80 ? -magnitude : magnitude;
}

/// The byte nearest to a number, ties to the even one, limited to the largest number.
template <int fraction_bits> uint8_t encode_fnuz(double value) {
  if (std::isnan(value)) return 0x80;
  // Searches the 128 magnitudes, which ascend.
  static const std::array<double, 128> magnitudes = [] {
    std::array<double, 128> numbers;
    for (size_t byte = 0; byte < numbers.size(); ++byte)
      numbers[byte] = decode_fnuz<fraction_bits>(uint8_t(byte));
    return numbers;
  }();
  const double magnitude = std::min(std::fabs(value), magnitudes.back());
  const auto above =
      size_t(std::lower_bound(magnitudes.begin(), magnitudes.end(), magnitude) - magnitudes.begin());
  size_t best = above;
  if (above > 0) {
    const double up = magnitudes[above] - magnitude, down = magnitude - magnitudes[above - 1];
    if (down < up || (down == up && above % 2 == 1)) best = above - 1;
  }
  return uint8_t(best == 0 ? 0 : best | (std::signbit(value) ? 0x80 : 0));
}

/// E4M3FNUZ.
inline double decode_fp8(uint8_t byte) {
  return decode_fnuz<3>(byte);
}
inline uint8_t encode_fp8(double value) {
  return encode_fnuz<3>(value);
}

/// The nearest integer of 8 bits with a sign, but -128; NaN becomes 0.
inline int8_t encode_i8(double value) {
  return int8_t(std::isnan(value) ? 0 : std::nearbyint(std::clamp(value, -127.0, 127.0)));
}

} // namespace sluice::conformance
