//===- half.cpp - the 16-bit floating-point types as numbers --------------------------------------------===//
#include "support/half.h"

#include <bit>

namespace sluice::support {
namespace {

constexpr int double_fraction_bits = 52;
constexpr int double_bias = 1023;

/// Narrows to one sign bit, exponent_bits and fraction_bits, round to nearest even, with subnormals and
/// overflow to infinity.
template <int exponent_bits, int fraction_bits> uint16_t narrow(double value) {
  constexpr int bias = (1 << (exponent_bits - 1)) - 1;
  constexpr uint16_t infinity = ((1 << exponent_bits) - 1) << fraction_bits;
  const uint64_t bits = std::bit_cast<uint64_t>(value);
  const uint16_t sign = uint16_t((bits >> 63) << 15);
  const int biased = int(bits >> double_fraction_bits) & 0x7ff;
  const uint64_t fraction = bits & ((uint64_t{1} << double_fraction_bits) - 1);
  if (biased == 0x7ff) return sign | infinity | (fraction != 0 ? uint16_t{1} << (fraction_bits - 1) : 0);

  const int exponent = biased - double_bias;
  if (exponent > bias) return sign | infinity;
  // A subnormal result has the smallest exponent and shifts further; 54 shifts everything out.
  const int smallest = 1 - bias;
  int shift = double_fraction_bits - fraction_bits;
  if (exponent < smallest) shift += smallest - exponent;
  if (biased == 0 || shift > double_fraction_bits + 1) return sign;
  const uint64_t significand = fraction | uint64_t{1} << double_fraction_bits;
  uint64_t kept = significand >> shift;
  const uint64_t lost = significand & ((uint64_t{1} << shift) - 1);
  const uint64_t half = uint64_t{1} << (shift - 1);
  if (lost > half || (lost == half && (kept & 1))) ++kept;
  // A carry out of the fraction moves into the exponent, up to infinity; kept holds the implicit bit.
  const uint64_t exponent_field = exponent < smallest ? 0 : uint64_t(exponent + bias - 1);
  return sign | uint16_t((exponent_field << fraction_bits) + kept);
}

} // namespace

float f16_to_float(uint16_t bits) {
  const uint32_t sign = uint32_t(bits & 0x8000) << 16;
  const uint32_t exponent = (bits >> 10) & 0x1f;
  const uint32_t fraction = bits & 0x3ff;
  if (exponent == 0x1f) {
    return std::bit_cast<float>(sign | 0x7f800000 | fraction << 13 | (fraction != 0 ? 0x400000u : 0u));
  }
  if (exponent != 0) return std::bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13);
  const float magnitude = float(fraction) * 0x1p-24f;
  return sign != 0 ? -magnitude : magnitude;
}

float bf16_to_float(uint16_t bits) {
  const bool is_nan = (bits & 0x7f80) == 0x7f80 && (bits & 0x7f) != 0;
  return std::bit_cast<float>(uint32_t(bits) << 16 | (is_nan ? 0x400000u : 0u));
}

uint16_t f16_from_double(double value) {
  return narrow<5, 10>(value);
}
uint16_t bf16_from_double(double value) {
  return narrow<8, 7>(value);
}

} // namespace sluice::support
