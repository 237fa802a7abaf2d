//===- half.h - the 16-bit floating-point types as numbers ----------------------------------------------===//
//
// Conversions between float or double and IEEE binary16 or bfloat16 as bit patterns. Narrowing rounds once,
// to nearest even, from the type given: double to half does not pass through float. Every NaN becomes a quiet
// NaN.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <cstdint>

namespace sluice::support {

float f16_to_float(uint16_t bits);
float bf16_to_float(uint16_t bits);
uint16_t f16_from_double(double value);
uint16_t bf16_from_double(double value);
/// A float is exactly a double, so these round once too.
inline uint16_t f16_from_float(float value) {
  return f16_from_double(value);
}
inline uint16_t bf16_from_float(float value) {
  return bf16_from_double(value);
}

} // namespace sluice::support
