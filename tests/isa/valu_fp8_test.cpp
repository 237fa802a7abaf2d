//===- valu_fp8_test.cpp - conversions between f32, f16 and 8-bit floats, exhaustively ------------------===//
//
// The second implementation represents a format as the sorted list of its values, computed by the manual's
// formula in doubles. Rounding is a search in that list, which has nothing in common with the bodies.
//
//===----------------------------------------------------------------------------------------------------===//
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <random>

#include "isa/wave_fixture.h"

namespace sluice::test {

namespace {

constexpr uint32_t fp16_overflow_on = 1u << 23 | 0x3f0;
constexpr uint32_t usual_mode = 0x3f0;

/// The non-negative values of a format, by code: codes are in the order of their values.
struct ValueList {
  std::vector<double> values;
  double beyond; // the next one, if the exponent had one more

  uint32_t largest() const { return uint32_t(values.size() - 1); }
};

/// sign, exponent, mantissa: 2^(1 - bias) * m / 2^M without a leading one, 2^(e - bias) * (1 + m / 2^M) with.
ValueList value_list(uint32_t mantissa_bits, int bias, uint32_t codes) {
  ValueList list;
  auto value = [&](uint32_t code) {
    const int exponent = int(code >> mantissa_bits);
    const double fraction = double(code & ((1u << mantissa_bits) - 1)) / std::ldexp(1.0, int(mantissa_bits));
    return exponent == 0 ? std::ldexp(fraction, 1 - bias) : std::ldexp(1 + fraction, exponent - bias);
  };
  for (uint32_t code = 0; code < codes; ++code)
    list.values.push_back(value(code));
  list.beyond = value(codes);
  return list;
}
const ValueList fp8 = value_list(3, 8, 128);
const ValueList bf8 = value_list(2, 16, 128);
const ValueList half = value_list(10, 15, 0x7c00);

enum class Rounding : uint32_t { nearest, up, down, to_zero };

/// The code of a magnitude; one more than the largest if it is beyond.
uint32_t nearest_code(const ValueList &list, double magnitude, Rounding rounding, bool negative) {
  const auto above = std::upper_bound(list.values.begin(), list.values.end(), magnitude);
  const uint32_t low = uint32_t(above - list.values.begin()) - 1;
  const double low_value = list.values[low];
  const double high_value = low == list.largest() ? list.beyond : *above;
  if (magnitude == low_value) return low;
  const bool away = rounding == Rounding::up ? !negative : rounding == Rounding::down && negative;
  if (rounding != Rounding::nearest) return away ? low + 1 : low;
  const double to_low = magnitude - low_value;
  const double to_high = high_value - magnitude;
  if (to_low != to_high) return to_low < to_high ? low : low + 1;
  return low % 2 == 0 ? low : low + 1;
}

uint32_t byte_of(const ValueList &list, float x, bool saturate) {
  constexpr uint32_t nan = 0x80;
  if (std::isnan(x)) return nan;
  const uint32_t sign = std::signbit(x) ? 0x80 : 0;
  const bool infinite = std::isinf(x);
  const uint32_t code =
      infinite ? 128 : nearest_code(list, std::fabs(double(x)), Rounding::nearest, sign != 0);
  if (code > list.largest()) return saturate ? list.largest() | sign : nan;
  return code == 0 ? 0 : code | sign;
}

float value_of(const ValueList &list, uint32_t byte) {
  if (byte == 0x80) return NAN;
  return float((byte & 0x80) != 0 ? -list.values[byte & 0x7f] : list.values[byte & 0x7f]);
}

uint16_t half_of(float x, Rounding rounding) {
  const uint16_t sign = std::signbit(x) ? 0x8000 : 0;
  if (std::isinf(x)) return sign | 0x7c00;
  const double magnitude = std::fabs(double(x));
  const uint32_t limit = half.largest() + 1;
  if (magnitude >= half.beyond) {
    const bool away =
        rounding == Rounding::nearest || rounding == (sign != 0 ? Rounding::down : Rounding::up);
    return uint16_t(sign | (away ? limit : half.largest()));
  }
  return uint16_t(sign | nearest_code(half, magnitude, rounding, sign != 0));
}

/// Every f32 that is equal or next to a value of a format, or halfway between two.
std::vector<float> critical_numbers(const ValueList &list) {
  std::vector<float> numbers;
  auto add = [&](double x) {
    const float center = float(x);
    for (float y : {center, std::nextafter(center, 0.0f), std::nextafter(center, INFINITY)}) {
      numbers.push_back(y);
      numbers.push_back(-y);
    }
  };
  for (size_t i = 0; i < list.values.size(); ++i) {
    const double next = i + 1 < list.values.size() ? list.values[i + 1] : list.beyond;
    add(list.values[i]);
    add((list.values[i] + next) / 2);
  }
  for (double x : {list.values[list.largest()] * 1.5, list.beyond, 3e38, 1e-45, 1e-38, 1e-30})
    add(x);
  for (float x : {INFINITY, -INFINITY, NAN, -NAN, std::bit_cast<float>(0x7f800001u)})
    numbers.push_back(x);
  while (numbers.size() % 64 != 0)
    numbers.push_back(0.0f);
  return numbers;
}

struct Format {
  const char *name;
  const ValueList &list;
};
const Format formats[] = {{"fp8", fp8}, {"bf8", bf8}};

bool same(uint32_t bits, float expected) {
  return std::isnan(expected) ? std::isnan(std::bit_cast<float>(bits))
                              : bits == std::bit_cast<uint32_t>(expected);
}

} // namespace

TEST_CASE("every 8-bit float has its value", "[isa][fp8]") {
  CHECK(fp8.values[127] == 240);
  CHECK(bf8.values[127] == 57344);
  for (emulator::SimdPath path : simd_paths())
    for (const Format &format : formats) {
      TestWave t(path);
      const std::string from = std::string("_f32_") + format.name;
      for (uint32_t base = 0; base < 256; base += 64) {
        t.fill_lanes(1, [&](uint32_t lane) { return base + lane + 0xabcdef00u; });
        t.fill_lanes(2, [&](uint32_t lane) { return (base + lane) << 16 | 0x7f000011u; });
        t.run("v_cvt" + from + " v4, v1\n v_cvt" + from + "_sdwa v5, v2 src0_sel:BYTE_2\n v_cvt_pk" + from +
              " v[6:7], v1\n v_cvt_pk" + from + "_sdwa v[8:9], v2 src0_sel:WORD_1\n v_cvt" + from +
              "_dpp v10, v1 quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf\n v_cvt_pk" + from +
              "_dpp v[12:13], v1 row_newbcast:5 row_mask:0xf bank_mask:0xf");
        uint32_t wrong = 0;
        for (uint32_t lane = 0; lane < 64; ++lane) {
          const float expected = value_of(format.list, base + lane);
          const float next = value_of(format.list, 0xef);
          wrong += !same(t.v(4, lane), expected) || !same(t.v(5, lane), expected);
          wrong += !same(t.v(6, lane), expected) || !same(t.v(7, lane), next);
          wrong += !same(t.v(8, lane), value_of(format.list, t.v(2, lane) >> 16 & 0xff)) ||
                   !same(t.v(9, lane), value_of(format.list, (t.v(2, lane) >> 24)));
          wrong += !same(t.v(10, lane), value_of(format.list, base + (lane ^ 1)));
          wrong += !same(t.v(12, lane), value_of(format.list, base + (lane & 48) + 5)) ||
                   !same(t.v(13, lane), next);
        }
        CHECK(wrong == 0);
      }
    }
}

TEST_CASE("f32 becomes the nearest 8-bit float, in one half of a register", "[isa][fp8]") {
  for (emulator::SimdPath path : simd_paths())
    for (const Format &format : formats)
      for (bool saturate : {false, true}) {
        std::vector<float> numbers = critical_numbers(format.list);
        for (uint32_t code = 0; code < 0x10000; code += 7)
          numbers.push_back(support::f16_to_float(uint16_t(code)));
        numbers.resize(numbers.size() / 64 * 64);
        TestWave t(path);
        // MODE's rounding does not matter.
        t.wave.set_mode((saturate ? fp16_overflow_on : usual_mode) | 0xf);
        const std::string name = std::string("v_cvt_pk_") + format.name + "_f32";
        const auto code = t.prepare(name + " v4, v1, v2\n " + name + " v5, -v1, |v2| op_sel:[0,0,1]");
        uint32_t wrong = 0;
        for (size_t at = 0; at < numbers.size(); at += 64) {
          t.fill_lanes(1, [&](uint32_t lane) { return std::bit_cast<uint32_t>(numbers[at + lane]); });
          t.fill_lanes(2, [&](uint32_t lane) { return std::bit_cast<uint32_t>(numbers[at + (lane ^ 21)]); });
          t.fill(4, 0x12345678u);
          t.fill(5, 0x12345678u);
          t.run(code);
          for (uint32_t lane = 0; lane < 64; ++lane) {
            const float a = numbers[at + lane], b = numbers[at + (lane ^ 21)];
            const uint32_t low = byte_of(format.list, a, saturate) | byte_of(format.list, b, saturate) << 8;
            const uint32_t high =
                byte_of(format.list, -a, saturate) | byte_of(format.list, std::fabs(b), saturate) << 8;
            const bool right = t.v(4, lane) == (0x12340000 | low) && t.v(5, lane) == (high << 16 | 0x5678);
            if (!right && wrong == 0)
              UNSCOPED_INFO(format.name << " of " << a << " and " << b << std::hex << " gives "
                                        << t.v(4, lane) << " and " << t.v(5, lane) << ", not " << low
                                        << " and " << high);
            wrong += !right;
          }
        }
        CHECK(wrong == 0);
      }
}

TEST_CASE("stochastic rounding goes up as often as the rest is large", "[isa][fp8]") {
  for (emulator::SimdPath path : simd_paths())
    for (const Format &format : formats) {
      TestWave t(path);
      const std::string name = std::string("v_cvt_sr_") + format.name + "_f32";
      std::mt19937 random(1);
      const uint32_t dropped = &format.list == &fp8 ? 20 : 21; // bits of an f32's mantissa
      constexpr const char *selects[] = {"", " op_sel:[0,0,1,0]", " op_sel:[0,0,0,1]", " op_sel:[0,0,1,1]"};
      std::vector<std::vector<TestWave::Prepared>> codes;
      for (const char *select : selects)
        codes.push_back(t.prepare(name + " v4, v1, v2" + select));
      for (uint32_t round = 0; round < 200; ++round) {
        t.fill_lanes(1, [&](uint32_t) {
          const uint32_t code = 8 + random() % 118; // a normal number, and the next one
          const double low = format.list.values[code], high = format.list.values[code + 1];
          return std::bit_cast<uint32_t>(float(low + (high - low) * double(random() % 4096) / 4096));
        });
        t.fill_lanes(2, [&](uint32_t) { return uint32_t(random()); });
        t.fill(4, 0xa1b2c3d4u);
        const uint32_t byte = round % 4;
        t.run(codes[byte]);
        for (uint32_t lane = 0; lane < 64; ++lane) {
          const float x = t.f(1, lane);
          const uint32_t low = nearest_code(format.list, x, Rounding::to_zero, false);
          const double step = format.list.values[low + 1] - format.list.values[low];
          const double rest = (double(x) - format.list.values[low]) / step; // [0, 1)
          const double drawn = double(t.v(2, lane) >> (32 - dropped)) / std::ldexp(1.0, int(dropped));
          const uint32_t expected = rest + drawn >= 1 ? low + 1 : low;
          REQUIRE((t.v(4, lane) >> 8 * byte & 0xff) == expected);
          const uint32_t others = ~(0xffu << 8 * byte);
          REQUIRE((t.v(4, lane) & others) == (0xa1b2c3d4u & others));
        }
      }
      // Subnormal results, overflow and NaN.
      t.fill(1, float(format.list.values[1] * 1.5));
      t.fill_lanes(2, [](uint32_t lane) { return lane < 32 ? 0x7ff00000u : 0x80000000u; });
      t.run(name + " v4, v1, v2\n");
      CHECK((t.v(4, 0) & 0xff) == 1);
      CHECK((t.v(4, 63) & 0xff) == 2);
      t.fill(1, -1e6f);
      t.run(name + " v4, v1, v2");
      CHECK((t.v(4) & 0xff) == 0x80);
      t.wave.set_mode(fp16_overflow_on);
      t.run(name + " v4, v1, v2");
      CHECK((t.v(4) & 0xff) == 0xff);
      t.fill(1, NAN);
      t.run(name + " v4, v1, v2");
      CHECK((t.v(4) & 0xff) == 0x80);
    }
}

TEST_CASE("f32 becomes the half that the rounding mode asks for", "[isa][fp8]") {
  const std::vector<float> numbers = critical_numbers(half);
  for (emulator::SimdPath path : simd_paths())
    for (Rounding rounding : {Rounding::nearest, Rounding::up, Rounding::down, Rounding::to_zero}) {
      TestWave t(path);
      t.wave.set_mode(usual_mode | uint32_t(rounding) << 2);
      const auto code = t.prepare("v_cvt_f16_f32 v4, v1\n v_cvt_pkrtz_f16_f32 v5, v1, v1");
      uint32_t wrong = 0;
      for (size_t at = 0; at < numbers.size(); at += 64) {
        t.fill_lanes(1, [&](uint32_t lane) { return std::bit_cast<uint32_t>(numbers[at + lane]); });
        t.run(code);
        for (uint32_t lane = 0; lane < 64; ++lane) {
          const float x = numbers[at + lane];
          const bool right = std::isnan(x)
                                 ? (t.v(4, lane) & 0x7fff) > 0x7c00 && (t.v(5, lane) & 0x7fff) > 0x7c00
                                 : t.v(4, lane) == half_of(x, rounding) &&
                                       t.v(5, lane) == half_of(x, Rounding::to_zero) * 0x10001u;
          if (!right && wrong == 0)
            UNSCOPED_INFO(x << " in mode " << uint32_t(rounding) << std::hex << " gives " << t.v(4, lane)
                            << " and " << t.v(5, lane) << ", not " << half_of(x, rounding));
          wrong += !right;
        }
      }
      CHECK(wrong == 0);
    }
}

} // namespace sluice::test
