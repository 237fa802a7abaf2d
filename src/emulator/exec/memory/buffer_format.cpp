//===- buffer_format.cpp - numbers as buffers hold them -------------------------------------------------===//
#include "emulator/exec/memory/buffer_format.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "support/half.h"

namespace sluice::emulator {

namespace {

// The manual's names start with the highest bits: in 10_11_11 the two lower components have 11 bits.
constexpr BufferFormat formats[16] = {
    {0, 0, {}},                // INVALID
    {1, 1, {8}},               // 8
    {2, 1, {16}},              // 16
    {2, 2, {8, 8}},            // 8_8
    {4, 1, {32}},              // 32
    {4, 2, {16, 16}},          // 16_16
    {4, 3, {11, 11, 10}},      // 10_11_11
    {4, 3, {10, 11, 11}},      // 11_11_10
    {4, 4, {2, 10, 10, 10}},   // 10_10_10_2
    {4, 4, {10, 10, 10, 2}},   // 2_10_10_10
    {4, 4, {8, 8, 8, 8}},      // 8_8_8_8
    {8, 2, {32, 32}},          // 32_32
    {8, 4, {16, 16, 16, 16}},  // 16_16_16_16
    {12, 3, {32, 32, 32}},     // 32_32_32
    {16, 4, {32, 32, 32, 32}}, // 32_32_32_32
    {0, 0, {}},                // reserved
};

int32_t sign_extended(uint32_t bits, uint32_t width) {
  return int32_t(bits << (32 - width)) >> (32 - width);
}

uint32_t largest(uint32_t width) {
  return (1u << width) - 1;
}

/// Floats of 10 and 11 bits are the upper bits of an f16 without its sign.
uint32_t small_float_shift(uint32_t width) {
  return 15 - width;
}

/// Rounded to nearest even; negative ones do not exist.
uint32_t small_float(float value, uint32_t width) {
  const uint32_t mantissa_bits = width - 5;
  const uint32_t infinity = 31u << mantissa_bits;
  if (std::isnan(value)) return infinity | 1u << (mantissa_bits - 1);
  if (value <= 0) return 0;
  const int exponent = std::max(std::isinf(value) ? 16 : std::ilogb(value), -14);
  const double unit = std::ldexp(1.0, exponent - int(mantissa_bits));
  const double rounded = std::nearbyint(double(value) / unit) * unit;
  if (rounded >= 65536) return infinity;
  return uint32_t(support::f16_from_double(rounded)) >> small_float_shift(width);
}

/// Rounded to an integer within bounds; a NaN becomes 0.
double to_integer(float value, double scale, double low, double high, bool nearest) {
  const double scaled = std::isnan(value) ? 0 : std::clamp(double(value) * scale, low, high);
  return nearest ? std::nearbyint(scaled) : std::trunc(scaled);
}

} // namespace

const BufferFormat &buffer_format(uint8_t data_format) {
  return formats[data_format];
}

std::string buffer_format_refusal(uint8_t data_format, NumberFormat number, uint32_t components, bool store) {
  const BufferFormat &format = formats[data_format];
  if (format.bytes == 0) return "gfx942 does not have buffer data format " + std::to_string(data_format);
  if (number == NumberFormat::reserved) return "gfx942 does not have buffer number format 6";
  const uint8_t width = format.bits[0];
  if (number == NumberFormat::floating && (width == 8 || width == 2 || format.bits[3] == 2))
    return "float is not a number format of buffer data format " + std::to_string(data_format);
  if (store && components < format.components) return "the store gives fewer components than the format has";
  return {};
}

uint32_t widen_component(uint32_t bits, uint32_t width, NumberFormat number) {
  if (width == 32) return bits;
  const int32_t with_sign = sign_extended(bits, width);
  float value = 0;
  switch (number) {
  case NumberFormat::uint:
    return bits;
  case NumberFormat::sint:
    return uint32_t(with_sign);
  case NumberFormat::unorm:
    value = float(bits) / float(largest(width));
    break;
  case NumberFormat::snorm:
    value = std::max(float(with_sign) / float(largest(width - 1)), -1.0f);
    break;
  case NumberFormat::uscaled:
    value = float(bits);
    break;
  case NumberFormat::sscaled:
    value = float(with_sign);
    break;
  default:
    value = support::f16_to_float(uint16_t(width == 16 ? bits : bits << small_float_shift(width)));
  }
  return std::bit_cast<uint32_t>(value);
}

uint32_t narrow_component(uint32_t bits, uint32_t width, NumberFormat number) {
  if (width == 32) return bits;
  const float value = std::bit_cast<float>(bits);
  const uint32_t mask = largest(width);
  const double most = largest(width - 1); // for signed ones
  switch (number) {
  case NumberFormat::uint:
    return std::min(bits, mask);
  case NumberFormat::sint:
    return uint32_t(std::clamp(int32_t(bits), -int32_t(most) - 1, int32_t(most))) & mask;
  case NumberFormat::unorm:
    return uint32_t(to_integer(value, mask, 0, mask, true));
  case NumberFormat::snorm:
    return uint32_t(int32_t(to_integer(value, most, -most, most, true))) & mask;
  case NumberFormat::uscaled:
    return uint32_t(to_integer(value, 1, 0, mask, false));
  case NumberFormat::sscaled:
    return uint32_t(int32_t(to_integer(value, 1, -most - 1, most, false))) & mask;
  default:
    return width == 16 ? support::f16_from_float(value) : small_float(value, width);
  }
}

uint16_t to_16_bits(uint32_t value, NumberFormat number) {
  switch (number) {
  case NumberFormat::uint:
    return uint16_t(std::min(value, 0xffffu));
  case NumberFormat::sint:
    return uint16_t(std::clamp(int32_t(value), -0x8000, 0x7fff));
  default:
    return support::f16_from_float(std::bit_cast<float>(value));
  }
}

uint32_t from_16_bits(uint16_t value, NumberFormat number) {
  switch (number) {
  case NumberFormat::uint:
    return value;
  case NumberFormat::sint:
    return uint32_t(int32_t(int16_t(value)));
  default:
    return std::bit_cast<uint32_t>(support::f16_to_float(value));
  }
}

} // namespace sluice::emulator
