//===- half_test.cpp - the 16-bit types against a second method -----------------------------------------===//
//
// The second method knows the formats only as sorted tables of values: a table entry is computed with ldexp
// from its fields, and narrowing is a search for the nearest entry.
//
//===----------------------------------------------------------------------------------------------------===//
#include "support/half.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

using namespace sluice::support;

namespace {

struct Format {
  const char *name;
  int exponent_bits;
  int fraction_bits;
  float (*widen)(uint16_t);
  uint16_t (*narrow)(double);

  int infinity() const { return ((1 << exponent_bits) - 1) << fraction_bits; }

  /// The value of a finite, non-negative pattern. The pattern of infinity counts as the next power of two, as
  /// in rounding.
  double value(int bits) const {
    const int bias = (1 << (exponent_bits - 1)) - 1;
    const int exponent = bits >> fraction_bits;
    const int fraction = bits & ((1 << fraction_bits) - 1);
    if (exponent == 0) return std::ldexp(fraction, 1 - bias - fraction_bits);
    return std::ldexp((1 << fraction_bits) + fraction, exponent - bias - fraction_bits);
  }

  std::vector<double> table() const {
    std::vector<double> values;
    for (int bits = 0; bits <= infinity(); ++bits)
      values.push_back(value(bits));
    return values;
  }
};

const Format formats[] = {{"f16", 5, 10, f16_to_float, f16_from_double},
                          {"bf16", 8, 7, bf16_to_float, bf16_from_double}};

uint16_t nearest(const std::vector<double> &table, double value) {
  const double magnitude = std::fabs(value);
  const size_t above = std::lower_bound(table.begin(), table.end(), magnitude) - table.begin();
  size_t bits = above;
  if (above == table.size()) {
    bits = table.size() - 1;
  } else if (table[above] != magnitude) {
    const double down = magnitude - table[above - 1],
                 up = table[above] - magnitude; // exact: neighbours are close
    if (down < up || (down == up && above % 2 == 1)) bits = above - 1;
  }
  return uint16_t(bits | (std::signbit(value) ? 0x8000 : 0));
}

uint32_t bits_of(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

} // namespace

TEST_CASE("every 16-bit pattern widens to its value and narrows back to itself", "[half]") {
  for (const Format &format : formats) {
    INFO(format.name);
    for (int bits = 0; bits < 0x8000; ++bits) {
      for (const int sign : {0, 0x8000}) {
        const uint16_t pattern = uint16_t(bits | sign);
        const float wide = format.widen(pattern);
        if (bits < format.infinity()) {
          const double expected = sign ? -format.value(bits) : format.value(bits);
          if (wide != expected || std::signbit(wide) != (sign != 0)) FAIL("pattern " << pattern);
          if (format.narrow(wide) != pattern) FAIL("pattern " << pattern << " does not come back");
        } else if (bits == format.infinity()) {
          CHECK(wide ==
                (sign ? -std::numeric_limits<float>::infinity() : std::numeric_limits<float>::infinity()));
          CHECK(format.narrow(wide) == pattern);
        } else {
          // A NaN stays one, becomes quiet and keeps its sign.
          if (!std::isnan(wide) || std::signbit(wide) != (sign != 0)) FAIL("pattern " << pattern);
          if (!(bits_of(wide) & 0x400000)) FAIL("pattern " << pattern << " widens to a signalling NaN");
          if (!std::isnan(format.widen(format.narrow(wide)))) FAIL("pattern " << pattern);
        }
      }
    }
  }
}

TEST_CASE("narrowing rounds to nearest even at, below and above every midpoint", "[half]") {
  for (const Format &format : formats) {
    INFO(format.name);
    const std::vector<double> table = format.table();
    for (size_t bits = 0; bits + 1 < table.size(); ++bits) {
      const double middle = table[bits] + (table[bits + 1] - table[bits]) / 2;
      const uint16_t even = uint16_t(bits % 2 == 0 ? bits : bits + 1);
      if (format.narrow(middle) != even) FAIL("middle above pattern " << bits);
      if (format.narrow(-middle) != (even | 0x8000)) FAIL("negative middle above pattern " << bits);
      if (format.narrow(std::nextafter(middle, 0)) != bits) FAIL("below the middle above pattern " << bits);
      const double higher = std::nextafter(middle, std::numeric_limits<double>::infinity());
      if (format.narrow(higher) != bits + 1) FAIL("above the middle above pattern " << bits);
    }
  }
}

TEST_CASE("narrowing agrees with a search for the nearest value", "[half]") {
  std::mt19937_64 random(1);
  for (const Format &format : formats) {
    INFO(format.name);
    const std::vector<double> table = format.table();
    const double limit = table.back() * 1.5;
    for (int i = 0; i < 200000; ++i) {
      uint64_t bits = random();
      double value;
      std::memcpy(&value, &bits, sizeof value);
      // Most random doubles are far out of range: scale every other one into it.
      if (i % 2 == 0) value = std::ldexp(double(bits >> 11) - 0x1p52, int(bits % 40) - 60);
      if (!std::isfinite(value) || std::fabs(value) > limit) continue;
      if (format.narrow(value) != nearest(table, value)) FAIL(value);
    }
  }
}

TEST_CASE("narrowing from double rounds once", "[half]") {
  // Halfway between 1 and the next f16, plus a little that a float cannot hold: through float it would round
  // to even.
  CHECK(f16_from_double(1 + 0x1p-11 + 0x1p-40) == 0x3c01);
  CHECK(f16_from_double(1 + 0x1p-11) == 0x3c00);
  CHECK(bf16_from_double(1 + 0x1p-8 + 0x1p-50) == 0x3f81);
  CHECK(bf16_from_double(1 + 0x1p-8) == 0x3f80);
}

TEST_CASE("overflow is infinity and underflow is a signed zero", "[half]") {
  CHECK(f16_from_double(65504) == 0x7bff);
  CHECK(f16_from_double(65519.999) == 0x7bff);
  CHECK(f16_from_double(65520) == 0x7c00);
  CHECK(f16_from_double(-1e300) == 0xfc00);
  CHECK(f16_from_double(-0x1p-25) == 0x8000);
  CHECK(f16_from_double(0x1.00001p-25) == 0x0001);
  CHECK(bf16_from_double(3.4e38) == 0x7f80);
  CHECK(bf16_from_double(-std::numeric_limits<double>::denorm_min()) == 0x8000);
}
