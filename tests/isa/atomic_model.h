//===- atomic_model.h - atomics by the manual's formulas ------------------------------------------------===//
//
// An independent reading of the ISA manual: "tmp" is the value in memory, "data" and "data2" the operands in
// the order of the DS instructions. 16-bit floats are rounded by searching for the nearest one.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace sluice::test::model {

/// A 16-bit float by its number of mantissa bits: 10 is f16, 7 is bf16.
inline double small_value(uint16_t bits, int mantissa) {
  const int exponent_bits = 15 - mantissa;
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = bits >> mantissa & ((1 << exponent_bits) - 1);
  const int fraction = bits & ((1 << mantissa) - 1);
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  if (exponent == (1 << exponent_bits) - 1)
    return fraction != 0 ? std::numeric_limits<double>::quiet_NaN()
                         : sign * std::numeric_limits<double>::infinity();
  return sign * (exponent == 0 ? std::ldexp(fraction, 1 - bias - mantissa)
                               : std::ldexp(fraction + (1 << mantissa), exponent - bias - mantissa));
}

/// The nearest number, ties to even; for sums in range. Magnitudes are in the order of their bits.
inline uint16_t nearest_small(double value, int mantissa) {
  const uint32_t infinity = 0x7fffu >> mantissa << mantissa;
  const double magnitude = std::fabs(value);
  uint32_t below = 0, above = infinity;
  while (above - below > 1) {
    const uint32_t middle = (below + above) / 2;
    (small_value(uint16_t(middle), mantissa) <= magnitude ? below : above) = middle;
  }
  const double down = magnitude - small_value(uint16_t(below), mantissa);
  const double up = small_value(uint16_t(above), mantissa) - magnitude;
  const bool rounds_up = up < down || (up == down && above % 2 == 0);
  return uint16_t((rounds_up ? above : below) | (std::signbit(value) ? 0x8000 : 0));
}

/// Float rules in terms of bits: `e` and `m` are the widths of exponent and mantissa.
struct FloatShape {
  int e, m;
  uint64_t exponent_mask() const { return ((uint64_t(1) << e) - 1) << m; }
  uint64_t fraction_mask() const { return (uint64_t(1) << m) - 1; }
  uint64_t sign() const { return uint64_t(1) << (e + m); }
  uint64_t quiet() const { return uint64_t(1) << (m - 1); }
  bool nan(uint64_t x) const {
    return (x & exponent_mask()) == exponent_mask() && (x & fraction_mask()) != 0;
  }
  bool denormal(uint64_t x) const { return (x & exponent_mask()) == 0 && (x & fraction_mask()) != 0; }
  uint64_t flushed(uint64_t x) const { return denormal(x) ? x & sign() : x; }
  double value(uint64_t x) const {
    if (m == 52) return std::bit_cast<double>(x);
    if (m == 23) return std::bit_cast<float>(uint32_t(x));
    return small_value(uint16_t(x), m);
  }
};
constexpr FloatShape f32{8, 23}, f64{11, 52}, f16{5, 10}, bf16{8, 7};

inline uint64_t add(const FloatShape &s, uint64_t tmp, uint64_t data, bool flush_in, bool flush_out) {
  if (flush_in) tmp = s.flushed(tmp), data = s.flushed(data);
  if (s.nan(tmp)) return tmp | s.quiet();
  if (s.nan(data)) return data | s.quiet();
  const double a = s.value(tmp), b = s.value(data);
  if (std::isinf(a) && std::isinf(b) && a != b) return s.exponent_mask() | s.quiet();
  uint64_t sum;
  if (s.m == 52)
    sum = std::bit_cast<uint64_t>(a + b);
  else if (s.m == 23)
    sum = std::bit_cast<uint32_t>(float(a) + float(b));
  else if (std::isinf(a) || std::isinf(b))
    sum = std::isinf(a) ? tmp : data;
  else
    sum = nearest_small(a + b, s.m);
  return flush_out ? s.flushed(sum) : sum;
}

inline uint64_t select(const FloatShape &s, uint64_t tmp, uint64_t data, bool greater, bool flush_in) {
  auto signaling = [&](uint64_t x) { return s.nan(x) && (x & s.quiet()) == 0; };
  if (signaling(tmp)) return tmp | s.quiet();
  if (signaling(data)) return data | s.quiet();
  if (s.nan(tmp)) return data;
  if (s.nan(data)) return tmp;
  const double a = s.value(flush_in ? s.flushed(tmp) : tmp), b = s.value(flush_in ? s.flushed(data) : data);
  const bool zeros_differ = a == 0 && b == 0 && std::signbit(a) != std::signbit(b);
  if (zeros_differ) return std::signbit(b) != greater ? data : tmp;
  return (greater ? b > a : b < a) ? data : tmp;
}

inline uint64_t compare_store(const FloatShape &s, uint64_t tmp, uint64_t compare, uint64_t source,
                              bool flush) {
  const double a = s.value(flush ? s.flushed(tmp) : tmp), c = s.value(flush ? s.flushed(compare) : compare);
  return a == c ? (flush ? s.flushed(source) : source) : tmp;
}

} // namespace sluice::test::model
