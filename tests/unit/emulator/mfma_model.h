//===- mfma_model.h - an independent model of the matrix core's sums ------------------------------------===//
//
// Shares no code with the machine: it decomposes values with frexp and adds them as fixed-point integers wide
// enough for every exponent, so that values are only rounded where the model says so.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <vector>

#include "emulator/exec/mfma.h"

namespace sluice::test {

using emulator::MfmaInput;
using emulator::MfmaShape;

/// A signed number of `places` binary places, as sign and magnitude, least significant word first.
template <int words, int places> class Fixed {
public:
  static Fixed of(double value) { return product(value, 1); }
  /// Exact.
  static Fixed product(double x, double y) {
    Fixed result;
    if (x == 0 || y == 0) return result;
    int x_exponent;
    int y_exponent;
    const auto x_digits = uint64_t(std::ldexp(std::frexp(std::fabs(x), &x_exponent), 53));
    const auto y_digits = uint64_t(std::ldexp(std::frexp(std::fabs(y), &y_exponent), 53));
    unsigned __int128 digits = (unsigned __int128)x_digits * y_digits;
    for (int position = x_exponent + y_exponent - 106 + places; digits != 0; ++position, digits >>= 1)
      if ((digits & 1) != 0) result.set(position);
    result.negative = (x < 0) != (y < 0);
    return result;
  }
  bool zero() const {
    return std::all_of(word.begin(), word.end(), [](uint64_t w) { return w == 0; });
  }
  Fixed plus(const Fixed &other) const {
    Fixed result;
    if (negative == other.negative) {
      unsigned __int128 carry = 0;
      for (int i = 0; i < words; ++i) {
        carry += (unsigned __int128)word[i] + other.word[i];
        result.word[i] = uint64_t(carry);
        carry >>= 64;
      }
      result.negative = negative;
      return result;
    }
    const bool swap =
        std::lexicographical_compare(word.rbegin(), word.rend(), other.word.rbegin(), other.word.rend());
    const Fixed &large = swap ? other : *this;
    const Fixed &small = swap ? *this : other;
    uint64_t borrow = 0;
    for (int i = 0; i < words; ++i) {
      const unsigned __int128 take = (unsigned __int128)small.word[i] + borrow;
      borrow = take > large.word[i];
      result.word[i] = uint64_t(large.word[i] - take);
    }
    result.negative = large.negative && !result.zero();
    return result;
  }
  /// Drops everything below 2^weight toward zero.
  Fixed truncated(int weight) const {
    Fixed result = *this;
    const int bits = std::clamp(weight + places, 0, words * 64);
    for (int i = 0; i < bits / 64; ++i)
      result.word[i] = 0;
    if (bits % 64 != 0) result.word[bits / 64] &= ~uint64_t(0) << (bits % 64);
    if (result.zero()) result.negative = false;
    return result;
  }
  /// Drops everything below 2^weight toward minus infinity.
  Fixed floored(int weight) const {
    Fixed result = truncated(weight);
    if (!negative || result.word == word) return result;
    Fixed unit;
    unit.set(weight + places);
    unit.negative = true;
    return result.plus(unit);
  }
  /// Nearest, ties to even, with `digits` binary digits and no last digit below 2^least; infinite from
  /// 2^limit on.
  double rounded(int digits, int least, int limit) const {
    int highest = words * 64 - 1;
    while (highest >= 0 && !bit(highest))
      --highest;
    if (highest < 0) return 0;
    const int last = std::max(highest - digits + 1, least + places); // position of the last digit kept
    uint64_t kept = 0;
    for (int position = highest; position >= last; --position)
      kept = kept * 2 + bit(position);
    const Fixed below = truncated(last - 1 - places);
    const bool sticky = below.word != word;
    if (bit(last - 1) && (sticky || (kept & 1))) ++kept;
    const bool infinite = kept != 0 && int(std::bit_width(kept)) + last - places > limit;
    const double magnitude = infinite ? INFINITY : std::ldexp(double(kept), last - places);
    return negative ? -magnitude : magnitude;
  }
  uint32_t rounded_f32() const { return std::bit_cast<uint32_t>(float(rounded(24, -149, 128))); }
  uint64_t rounded_f64() const { return std::bit_cast<uint64_t>(rounded(53, -1074, 1024)); }

private:
  bool bit(int position) const { return position >= 0 && (word[position / 64] >> (position % 64) & 1) != 0; }
  void set(int position) {
    if (position < 0 || position >= words * 64) FAIL("a value beyond the places");
    word[position / 64] |= uint64_t(1) << (position % 64);
  }

  std::array<uint64_t, words> word{};
  bool negative = false;
};
using Wide = Fixed<16, 640>;      // every product of two f32
using VeryWide = Fixed<72, 2304>; // every product of two f64

/// Digits after the point, exponent bias, and whether there are infinities.
struct InputFormat {
  int width;
  int digits;
  int bias;
  bool infinities;
};
inline InputFormat format_of(MfmaInput input) {
  switch (input) {
  case MfmaInput::f16:
    return {16, 10, 15, true};
  case MfmaInput::bf16:
    return {16, 7, 127, true};
  case MfmaInput::fp8:
    return {8, 3, 8, false};
  case MfmaInput::bf8:
    return {8, 2, 16, false};
  case MfmaInput::f64:
    return {64, 52, 1023, true};
  default:
    return {32, 23, 127, true};
  }
}

inline double to_double(MfmaInput input, uint64_t bits) {
  const InputFormat format = format_of(input);
  const uint64_t sign = uint64_t(1) << (format.width - 1);
  if (!format.infinities && bits == sign) return NAN;
  const bool negative = (bits & sign) != 0;
  const auto field = int64_t((bits & (sign - 1)) >> format.digits);
  const uint64_t point = bits & ((uint64_t(1) << format.digits) - 1);
  double value;
  if (format.infinities && field == int64_t((sign - 1) >> format.digits)) {
    value = point == 0 ? INFINITY : NAN;
  } else {
    const uint64_t kept = input == MfmaInput::xf32 ? point & ~uint64_t(0x1fff) : point;
    const double fraction = std::ldexp(double(kept), -format.digits);
    value = field == 0 ? std::ldexp(fraction, 1 - format.bias)
                       : std::ldexp(1 + fraction, int(field) - format.bias);
  }
  return negative ? -value : value;
}

/// The exponent used by the summation: that of the leading digit, but not below the format's smallest.
inline int counted_exponent(double value, MfmaInput input) {
  return std::max(std::ilogb(value), 1 - format_of(input).bias);
}

struct ModelSum {
  Wide sum;
  int largest = 0;
  bool any = false;
};
/// Products first, first + stride, ... truncated at 24 places below the largest exponent.
inline ModelSum cut_sum(const MfmaShape &shape, const std::vector<double> &a, const std::vector<double> &b,
                        size_t first, size_t stride) {
  ModelSum result;
  auto exponent = [&](size_t k) {
    return counted_exponent(a[k], shape.input) + counted_exponent(b[k], shape.b_input);
  };
  for (size_t k = first; k < a.size(); k += stride)
    if (a[k] != 0 && b[k] != 0) {
      result.largest = result.any ? std::max(result.largest, exponent(k)) : exponent(k);
      result.any = true;
    }
  for (size_t k = first; k < a.size(); k += stride)
    result.sum = result.sum.plus(Wide::product(a[k], b[k]).truncated(result.largest - 24));
  return result;
}

inline uint32_t model_group(const MfmaShape &shape, const std::vector<double> &a,
                            const std::vector<double> &b, uint32_t c) {
  const double c_value = std::bit_cast<float>(c);
  double plain = c_value;
  bool over = false;
  bool under = false;
  for (size_t k = 0; k < a.size(); ++k) {
    plain += a[k] * b[k];
    if (!std::isfinite(a[k] * b[k])) continue;
    over = over || a[k] * b[k] >= std::ldexp(1.0, 128);
    under = under || a[k] * b[k] <= -std::ldexp(1.0, 128);
  }
  if (std::isnan(plain) || (over && under && std::isfinite(plain))) return 0x7fc00000;
  if (std::isinf(plain)) return plain > 0 ? 0x7f800000 : 0xff800000;
  if (over || under) return over ? 0x7f800000 : 0xff800000;

  ModelSum products;
  if (format_of(shape.input).width == 8) {
    const ModelSum even = cut_sum(shape, a, b, 0, 2);
    const ModelSum odd = cut_sum(shape, a, b, 1, 2);
    products.any = even.any || odd.any;
    products.largest = !odd.any    ? even.largest
                       : !even.any ? odd.largest
                                   : std::max(even.largest, odd.largest);
    products.sum = even.sum.floored(products.largest - 24).plus(odd.sum.floored(products.largest - 24));
  } else {
    products = cut_sum(shape, a, b, 0, 1);
  }
  if (!products.any && c_value == 0) return 0;
  Wide c_wide = Wide::of(c_value);
  int common = products.largest;
  if (c_value != 0) {
    const int c_exponent = counted_exponent(c_value, MfmaInput::f32);
    common = products.any ? std::max(common, c_exponent) : c_exponent;
    if (format_of(shape.input).width == 8 && c_exponent < common - 25) c_wide = Wide();
  }
  return products.sum.floored(common - 31).plus(c_wide.floored(common - 24)).rounded_f32();
}

inline size_t model_group_size(MfmaInput input) {
  return format_of(input).width == 8 ? 16 : input == MfmaInput::xf32 ? 4 : 8;
}

/// One fused multiply-add. Fixed point has no sign of zero: a zero takes it from its terms.
template <class Number> double model_fused(double a, double b, double c, int digits, int least, int limit) {
  if (!std::isfinite(a) || !std::isfinite(b)) return a * b + c;
  if (!std::isfinite(c)) return c;
  const Number sum = Number::product(a, b).plus(Number::of(c));
  if (!sum.zero()) return sum.rounded(digits, least, limit);
  const bool both_negative = (std::signbit(a) != std::signbit(b)) && std::signbit(c);
  return both_negative && (a == 0 || b == 0) ? -0.0 : 0.0;
}

/// The bits of an element of D, from the bits of a row of A and the elements of B they are multiplied with.
inline uint64_t model_element(const MfmaShape &shape, const std::vector<uint64_t> &a,
                              const std::vector<uint64_t> &b, uint64_t c) {
  if (shape.input == MfmaInput::i8) {
    int64_t sum = int32_t(c);
    for (size_t k = 0; k < a.size(); ++k)
      sum += int64_t(int8_t(a[k])) * int8_t(b[k]);
    return uint32_t(sum);
  }
  std::vector<double> x;
  std::vector<double> y;
  for (size_t k = 0; k < a.size(); ++k) {
    x.push_back(to_double(shape.input, a[k]));
    y.push_back(to_double(shape.b_input, b[k]));
  }
  if (shape.input == MfmaInput::f64) {
    double sum = to_double(MfmaInput::f64, c);
    for (size_t k = 0; k < a.size(); ++k)
      sum = model_fused<VeryWide>(x[k], y[k], sum, 53, -1074, 1024);
    return std::isnan(sum) ? 0x7ff8000000000000 : std::bit_cast<uint64_t>(sum);
  }
  if (shape.input == MfmaInput::f32) {
    double sum = to_double(MfmaInput::f32, c);
    for (size_t k = 0; k < a.size(); ++k)
      sum = model_fused<Wide>(x[k], y[k], sum, 24, -149, 128);
    return std::isnan(sum) ? 0x7fc00000 : std::bit_cast<uint32_t>(float(sum));
  }
  const size_t size = std::min(model_group_size(shape.input), a.size());
  for (size_t k = 0; k < a.size(); k += size)
    c = model_group(shape, {x.begin() + k, x.begin() + k + size}, {y.begin() + k, y.begin() + k + size},
                    uint32_t(c));
  return c;
}

} // namespace sluice::test
