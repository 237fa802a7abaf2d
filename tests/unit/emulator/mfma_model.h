//===- mfma_model.h - an independent model of MFMA sums -------------------------------------------------===//
//
// Shares nothing with the machine's: it takes values apart with frexp and adds them as fixed-point integers
// wide enough for every exponent, cutting and rounding digit by digit.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "emulator/exec/mfma.h"

namespace sluice::test {

using emulator::MfmaInput;
using emulator::MfmaShape;

/// A signed number of `places` binary places: 1,024 bits of magnitude, least significant word first.
class Wide {
public:
  static constexpr int words = 16;
  static constexpr int places = 640; // below 2^-(2*133): every product of two bf16 fits exactly

  Wide() : word{} {}
  static Wide of(double value) {
    Wide result;
    if (value == 0) return result;
    int exponent;
    const double fraction = std::frexp(std::fabs(value), &exponent);
    const uint64_t digits = uint64_t(std::ldexp(fraction, 53));
    result.place(digits, exponent - 53 + places);
    result.negative = value < 0;
    return result;
  }
  bool zero() const {
    return std::all_of(word, word + words, [](uint64_t w) { return w == 0; });
  }
  bool bit(int position) const { return position >= 0 && (word[position / 64] >> (position % 64) & 1) != 0; }
  int top() const { // position of the highest one, or -1
    for (int position = words * 64 - 1; position >= 0; --position)
      if (bit(position)) return position;
    return -1;
  }
  Wide plus(const Wide &other) const {
    if (negative == other.negative) {
      Wide result = add(*this, other);
      result.negative = negative;
      return result;
    }
    const bool smaller = less(*this, other);
    Wide result = smaller ? subtract(other, *this) : subtract(*this, other);
    result.negative = (smaller ? other.negative : negative) && !result.zero();
    return result;
  }
  /// Drops everything below 2^weight toward zero.
  Wide truncated(int weight) const {
    Wide result = *this;
    for (int position = 0; position < weight + places; ++position)
      result.clear(position);
    if (result.zero()) result.negative = false;
    return result;
  }
  /// Drops everything below 2^weight toward minus infinity.
  Wide floored(int weight) const {
    Wide result = truncated(weight);
    Wide rest = plus(result.negated());
    if (!rest.zero() && negative) {
      Wide unit;
      unit.place(1, weight + places);
      unit.negative = true;
      result = result.plus(unit);
    }
    return result;
  }
  Wide negated() const {
    Wide result = *this;
    result.negative = !negative && !zero();
    return result;
  }
  /// Bits of the f32 nearest, ties to even; the sign of a zero result that was not zero is kept.
  uint32_t rounded() const {
    const int highest = top();
    if (highest < 0) return 0;
    const int exponent = std::max(highest - places, -126);
    const int last = exponent - 23 + places; // position of the last digit kept
    uint64_t digits = 0;
    for (int position = highest; position >= last; --position)
      digits = digits * 2 + bit(position);
    bool sticky = false;
    for (int position = 0; position < last - 1; ++position)
      sticky = sticky || bit(position);
    if (bit(last - 1) && (sticky || (digits & 1))) ++digits;
    const double magnitude = std::ldexp(double(digits), exponent - 23);
    const uint32_t sign = negative ? 0x80000000u : 0u;
    if (magnitude >= std::ldexp(1.0, 128)) return sign | 0x7f800000u;
    uint32_t bits;
    const float value = float(magnitude);
    std::memcpy(&bits, &value, 4);
    return sign | bits;
  }
  bool negative = false;

private:
  uint64_t word[words];

  void place(uint64_t digits, int position) {
    for (int i = 0; i < 64; ++i)
      if (digits >> i & 1) {
        if (position + i < 0) FAIL("a value below the smallest place");
        word[(position + i) / 64] |= uint64_t(1) << ((position + i) % 64);
      }
  }
  void clear(int position) {
    if (position >= 0 && position < words * 64) word[position / 64] &= ~(uint64_t(1) << (position % 64));
  }
  static bool less(const Wide &x, const Wide &y) {
    for (int i = words - 1; i >= 0; --i)
      if (x.word[i] != y.word[i]) return x.word[i] < y.word[i];
    return false;
  }
  static Wide add(const Wide &x, const Wide &y) {
    Wide result;
    unsigned __int128 carry = 0;
    for (int i = 0; i < words; ++i) {
      carry += (unsigned __int128)x.word[i] + y.word[i];
      result.word[i] = uint64_t(carry);
      carry >>= 64;
    }
    return result;
  }
  static Wide subtract(const Wide &x, const Wide &y) {
    Wide result;
    uint64_t borrow = 0;
    for (int i = 0; i < words; ++i) {
      const unsigned __int128 take = (unsigned __int128)y.word[i] + borrow;
      borrow = take > x.word[i];
      result.word[i] = uint64_t(x.word[i] - take);
    }
    return result;
  }
};

inline double half_to_double(MfmaInput input, uint16_t bits) {
  const int digits = input == MfmaInput::f16 ? 10 : 7;
  const int bias = input == MfmaInput::f16 ? 15 : 127;
  const int all_ones = input == MfmaInput::f16 ? 31 : 255;
  const int field = (bits & 0x7fff) >> digits;
  const double fraction = double(bits & ((1 << digits) - 1)) / double(1 << digits);
  double value = field == 0          ? std::ldexp(fraction, 1 - bias)
                 : field == all_ones ? (fraction == 0 ? INFINITY : NAN)
                                     : std::ldexp(1 + fraction, field - bias);
  return bits & 0x8000 ? -value : value;
}

/// Exponent as the summation counts it: of the leading digit, but not below the format's smallest.
inline int counted_exponent(double value, int smallest) {
  return std::max(std::ilogb(value), smallest);
}

inline uint32_t model_group(MfmaInput input, const std::vector<uint16_t> &a, const std::vector<uint16_t> &b,
                            uint32_t c) {
  float c_float;
  std::memcpy(&c_float, &c, 4);
  const int smallest = input == MfmaInput::f16 ? -14 : -126;
  double plain = c_float;
  bool any = false;
  bool over = false;
  bool under = false;
  int largest = 0;
  for (size_t k = 0; k < a.size(); ++k) {
    const double x = half_to_double(input, a[k]);
    const double y = half_to_double(input, b[k]);
    plain += x * y;
    if (!std::isfinite(x * y) || x * y == 0) continue;
    if (x * y >= std::ldexp(1.0, 128)) over = true;
    if (x * y <= -std::ldexp(1.0, 128)) under = true;
    const int exponent = counted_exponent(x, smallest) + counted_exponent(y, smallest);
    largest = any ? std::max(largest, exponent) : exponent;
    any = true;
  }
  if (std::isnan(plain) || (over && under && std::isfinite(plain))) return 0x7fc00000;
  if (std::isinf(plain)) return plain > 0 ? 0x7f800000 : 0xff800000;
  if (over || under) return over ? 0x7f800000 : 0xff800000;
  if (!any && c_float == 0) return 0;
  Wide sum;
  for (size_t k = 0; k < a.size(); ++k) {
    const double product = half_to_double(input, a[k]) * half_to_double(input, b[k]);
    if (product != 0) sum = sum.plus(Wide::of(product).truncated(largest - 24));
  }
  int common = any ? largest : counted_exponent(c_float, -126);
  if (c_float != 0) common = std::max(common, counted_exponent(c_float, -126));
  return sum.floored(common - 31).plus(Wide::of(c_float).floored(common - 24)).rounded();
}

inline uint32_t model_element(const MfmaShape &shape, const std::vector<uint16_t> &a,
                              const std::vector<uint16_t> &b, uint32_t c) {
  for (size_t k = 0; k < a.size(); k += 8) {
    const size_t end = std::min(a.size(), k + 8);
    c = model_group(shape.input, {a.begin() + k, a.begin() + end}, {b.begin() + k, b.begin() + end}, c);
  }
  return c;
}

} // namespace sluice::test
