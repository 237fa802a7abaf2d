//===- fp8.cpp - the 8-bit floating-point types as numbers ----------------------------------------------===//
#include "support/fp8.h"

#include <bit>
#include <cmath>
#include <limits>

namespace sluice::support {
namespace {

constexpr int float_bias = 127;
constexpr int float_fraction_bits = 23;
constexpr uint8_t sign_bit = 0x80;

/// A finite number of one sign bit, 7 - fraction_bits exponent bits and fraction_bits.
template <int fraction_bits, int bias> float finite(uint8_t bits) {
  const uint32_t magnitude = bits & 0x7f;
  const uint32_t sign = uint32_t(bits & sign_bit) << 24;
  if (magnitude >> fraction_bits == 0) { // a subnormal: fraction * 2^(1 - bias - fraction_bits)
    const float unit =
        std::bit_cast<float>(uint32_t(float_bias + 1 - bias - fraction_bits) << float_fraction_bits);
    const float value = float(magnitude) * unit;
    return sign != 0 ? -value : value;
  }
  const uint32_t rebias = uint32_t(float_bias - bias) << float_fraction_bits;
  return std::bit_cast<float>(sign | (rebias + (magnitude << (float_fraction_bits - fraction_bits))));
}

constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

} // namespace

float e4m3fnuz_to_float(uint8_t bits) {
  return bits == sign_bit ? not_a_number : finite<3, 8>(bits);
}

float e4m3fn_to_float(uint8_t bits) {
  return (bits & 0x7f) == 0x7f ? not_a_number : finite<3, 7>(bits);
}

float e5m2fnuz_to_float(uint8_t bits) {
  return bits == sign_bit ? not_a_number : finite<2, 16>(bits);
}

float e5m2_to_float(uint8_t bits) {
  constexpr uint8_t infinity_bits = 0x7c;
  const uint8_t magnitude = bits & 0x7f;
  if (magnitude > infinity_bits) return not_a_number;
  if (magnitude < infinity_bits) return finite<2, 15>(bits);
  constexpr float infinity = std::numeric_limits<float>::infinity();
  return bits & sign_bit ? -infinity : infinity;
}

namespace {

/// The pattern without a sign of the number nearest to `magnitude`, up to that of the pattern `largest`.
uint8_t nearest(float (&to_float)(uint8_t), uint8_t largest, double magnitude) {
  // Bit patterns without the sign are in the order of their values: halve the range that holds the number.
  uint8_t low = 0, high = largest;
  while (high - low > 1) {
    const auto middle = uint8_t((low + high) / 2);
    (double{to_float(middle)} <= magnitude ? low : high) = middle;
  }
  const double between = (double{to_float(low)} + to_float(high)) / 2;
  const bool up = magnitude > between || (magnitude == between && low % 2 == 1);
  return up ? high : low;
}

uint8_t fnuz_from_double(float (&to_float)(uint8_t), double value) {
  if (std::isnan(value)) return sign_bit;
  const uint8_t bits = nearest(to_float, 0x7f, std::abs(value));
  return std::signbit(value) && bits != 0 ? uint8_t(bits | sign_bit) : bits;
}

uint8_t ocp_from_double(float (&to_float)(uint8_t), uint8_t largest, double value) {
  const uint8_t bits = std::isnan(value) ? 0x7f : nearest(to_float, largest, std::abs(value));
  return std::signbit(value) ? uint8_t(bits | sign_bit) : bits;
}

} // namespace

uint8_t e4m3fnuz_from_double(double value) {
  return fnuz_from_double(e4m3fnuz_to_float, value);
}

uint8_t e5m2fnuz_from_double(double value) {
  return fnuz_from_double(e5m2fnuz_to_float, value);
}

uint8_t e4m3fn_from_double(double value) {
  return ocp_from_double(e4m3fn_to_float, 0x7e, value);
}

uint8_t e5m2_from_double(double value) {
  return ocp_from_double(e5m2_to_float, 0x7b, value);
}

} // namespace sluice::support
