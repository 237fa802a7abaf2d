//===- fp8.h - the 8-bit floating-point types as numbers ------------------------------------------------===//
//
// Conversions from bit patterns to float, all exact, and back. The FNUZ encodings (CDNA3) have one NaN,
// 0x80, where the others have a negative zero. E4M3FN and E5M2 are those of the OCP 8-bit floating-point
// specification.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <cstdint>

namespace sluice::support {

float e4m3fnuz_to_float(uint8_t bits);
float e4m3fn_to_float(uint8_t bits);
float e5m2fnuz_to_float(uint8_t bits);
float e5m2_to_float(uint8_t bits);

/// Rounds once, to nearest even. Values beyond +-240, including infinity, become +-240, and zeros have no
/// sign.
uint8_t e4m3fnuz_from_double(double value);
/// The same with +-57344.
uint8_t e5m2fnuz_from_double(double value);
/// The same with +-448 and +-57344, but zeros keep their sign.
uint8_t e4m3fn_from_double(double value);
uint8_t e5m2_from_double(double value);

} // namespace sluice::support
