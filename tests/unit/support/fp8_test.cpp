//===- fp8_test.cpp - every 8-bit float against a second method -----------------------------------------===//
//
// The second method counts: from the smallest subnormal on, it reaches the values of rising patterns by
// adding a step that doubles with every new exponent. It knows neither biases nor exponent fields, only how
// many patterns share a step, and the first step. Landmarks are from the OCP 8-bit floating-point
// specification (E4M3, E5M2) and the CDNA3 instruction set manual (FNUZ).
//
//===----------------------------------------------------------------------------------------------------===//
#include "support/fp8.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <limits>
#include <vector>

using namespace sluice::support;

namespace {

struct Format {
  const char *name;
  float (*widen)(uint8_t);
  uint8_t (*narrow)(double);
  int patterns_per_step; // that share an exponent
  double smallest;       // positive subnormal
  double largest;        // finite
  int largest_bits;      // its pattern
  bool is_fnuz;
  bool has_infinity;
};

constexpr Format formats[] = {
    {"e4m3fnuz", e4m3fnuz_to_float, e4m3fnuz_from_double, 8, 0x1p-10, 240, 0x7f, true, false},
    {"e4m3fn", e4m3fn_to_float, e4m3fn_from_double, 8, 0x1p-9, 448, 0x7e, false, false},
    {"e5m2fnuz", e5m2fnuz_to_float, e5m2fnuz_from_double, 4, 0x1p-17, 57344, 0x7f, true, false},
    {"e5m2", e5m2_to_float, e5m2_from_double, 4, 0x1p-16, 57344, 0x7b, false, true},
};

/// The values of the patterns 0 to largest_bits.
std::vector<double> count_values(const Format &format) {
  std::vector<double> values = {0};
  double step = format.smallest;
  for (int bits = 0; bits < format.largest_bits; ++bits) {
    // Subnormals and the first exponent share a step; then each exponent has its own.
    if (bits >= 2 * format.patterns_per_step && bits % format.patterns_per_step == 0) step *= 2;
    values.push_back(values.back() + step);
  }
  return values;
}

} // namespace

TEST_CASE("every 8-bit float has its value", "[fp8]") {
  for (const Format &format : formats) {
    INFO(format.name);
    const std::vector<double> values = count_values(format);
    REQUIRE(values[size_t(format.largest_bits)] == format.largest);
    for (int bits = 0; bits < 256; ++bits) {
      INFO("pattern " << bits);
      const float value = format.widen(uint8_t(bits));
      const int magnitude = bits & 0x7f;
      const double sign = bits & 0x80 ? -1 : 1;
      if (format.is_fnuz && bits == 0x80) {
        CHECK(std::isnan(value));
      } else if (magnitude <= format.largest_bits) {
        CHECK(value == sign * values[size_t(magnitude)]);
        CHECK(std::signbit(value) == (sign < 0));
      } else if (format.has_infinity && magnitude == format.largest_bits + 1) {
        CHECK(value == float(sign) * std::numeric_limits<float>::infinity());
      } else {
        CHECK(std::isnan(value));
      }
    }
  }
}

TEST_CASE("a number becomes the nearest 8-bit float, and one in the middle the even one", "[fp8]") {
  for (const Format &format : formats) {
    INFO(format.name);
    const std::vector<double> values = count_values(format);
    const auto narrowed = [&](double value) { return int(format.narrow(value)); };
    const auto negative = [&](int bits) { return bits == 0 && format.is_fnuz ? 0 : bits | 0x80; };
    for (int bits = 0; bits <= format.largest_bits; ++bits) {
      INFO("pattern " << bits);
      const double value = values[size_t(bits)];
      CHECK(narrowed(value) == bits);
      CHECK(narrowed(-value) == negative(bits));
      if (bits == format.largest_bits) continue;
      const double middle = (value + values[size_t(bits) + 1]) / 2;
      CHECK(narrowed(middle) == bits + bits % 2);
      CHECK(narrowed(std::nextafter(middle, 0)) == bits);
      CHECK(narrowed(-std::nextafter(middle, 1e9)) == negative(bits + 1));
    }
    for (const double beyond : {format.largest * 1.5, 1e300, std::numeric_limits<double>::infinity()}) {
      CHECK(narrowed(beyond) == format.largest_bits);
      CHECK(narrowed(-beyond) == negative(format.largest_bits));
    }
    CHECK(std::isnan(format.widen(format.narrow(std::nan("")))));
  }
}
