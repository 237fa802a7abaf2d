//===- append_groups.cpp - the blocks and groups that an append must store ------------------------------===//
#include "conformance/cache_ops/append_groups.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace sluice::conformance {

namespace {

constexpr int block_elements = 32, q8_bytes = 34, q4_bytes = 18;
constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double largest_f16 = 65504;
// Relative errors of an F32 quotient or product, some of them one after another, and of a rounding to F16.
constexpr double f32_error = 0x1p-21, f16_error = 0x1p-11;

double in_f16(double value) {
  return as_stored(Element::f16, std::clamp(value, -largest_f16, largest_f16));
}

float size_of(const Computed &x) {
  return std::fabs(float(x.value));
}

/// The first of the numbers with the largest size.
const Computed &largest_of(std::span<const Computed> values) {
  return *std::ranges::max_element(
      values, [](const Computed &x, const Computed &y) { return size_of(x) < size_of(y); });
}

/// A block of ggml whose scale is `most` / `divisor`; `offset` is added to the quotients.
StoredGroup block(std::span<const Computed> values, Computed most, float divisor, int offset) {
  const bool is_exact = std::ranges::all_of(values, [](const Computed &x) { return x.margin == 0; });
  const float scale = float(most.value) / divisor;
  const float own = 1 / scale;
  const float inverse = std::isfinite(own) ? own : 0;
  StoredGroup made;
  made.scale = is_exact
                   ? Computed{as_stored(Element::f16, scale), 0}
                   : Computed{scale, (most.margin + f32_error * std::fabs(most.value)) / std::fabs(divisor)};
  for (const Computed &x : values) {
    const float quotient = float(double{float(x.value)} * inverse);
    const double most_error = most.value == 0 ? 0 : most.margin / std::fabs(most.value);
    if (!is_exact)
      made.numbers.push_back(
          {quotient + double(offset),
           x.margin * std::fabs(inverse) + std::fabs(quotient) * (most_error + f32_error) + f32_error});
    else if (offset == 0)
      made.numbers.push_back({std::round(quotient), 0});
    else
      made.numbers.push_back({std::min(std::trunc(quotient + 8.5f), 15.0f), 0});
  }
  return made;
}

StoredGroup q8(std::span<const Computed> values) {
  Computed most = largest_of(values);
  most.value = std::fabs(most.value);
  return block(values, most, 127, 0);
}

StoredGroup q4(std::span<const Computed> values) {
  Computed most = largest_of(values);
  if (most.value == 0) most.value = 0; // -0 is not larger than the 0 that ggml begins with
  return block(values, most, -8, 8);
}

StoredGroup u4(bool has_zero, std::span<const Computed> values) {
  float least = float(values[0].value), most = least;
  double margin = 0;
  for (const Computed &x : values) {
    least = std::min(least, float(x.value));
    most = std::max(most, float(x.value));
    margin = std::max(margin, x.margin);
  }
  const float reach = has_zero ? most - least : std::max(most, -least), steps = has_zero ? 15 : 7;
  StoredGroup made;
  made.scale = {in_f16(reach * (1 / steps)), 0};
  const bool is_one = made.scale.value == 0 || (has_zero && std::fabs(least) > 32768 * made.scale.value);
  if (is_one) made.scale.value = 1;
  const double scale = made.scale.value;
  const float inverse = 1 / float(scale);
  made.zero = {has_zero ? in_f16(float(double{-least} * inverse)) : 8, 0};
  double scale_error = 0;
  if (margin != 0) {
    // Both are rounded from numbers within these margins, but a scale of 1 that replaces another is exact.
    if (!is_one) {
      made.scale = {std::min(reach / double{steps}, largest_f16), 2 * margin / steps + f32_error * scale};
      scale_error = made.scale.margin / scale + f16_error;
    }
    if (has_zero)
      made.zero = {-least / scale, margin / scale + std::fabs(least / scale) * (scale_error + f32_error)};
  }
  for (const Computed &x : values) {
    const double quotient = x.value / scale;
    const double zero_error = made.zero.margin + (margin != 0 ? f16_error * std::fabs(made.zero.value) : 0);
    made.numbers.push_back(
        {quotient + made.zero.value, x.margin / scale + std::fabs(quotient) * (scale_error + f32_error) +
                                         zero_error + f32_error * std::fabs(made.zero.value)});
  }
  return made;
}

/// A group with a number that is not finite: its scale is NaN.
StoredGroup not_finite(Element cache, std::span<const Computed> values) {
  StoredGroup made{{nan, 0}, {nan, 0}, {}};
  for (const Computed &x : values)
    made.numbers.push_back({cache == Element::q4_0 && std::isfinite(x.value) ? 8.0 : 0.0, 0});
  return made;
}

} // namespace

StoredGroup stored_group(Element cache, bool has_zero, std::span<const Computed> values) {
  if (!std::ranges::all_of(values, [](const Computed &x) { return std::isfinite(x.value); }))
    return not_finite(cache, values);
  return cache == Element::q8_0 ? q8(values) : cache == Element::q4_0 ? q4(values) : u4(has_zero, values);
}

size_t cache_bytes(Element cache, int64_t elements) {
  switch (cache) {
  case Element::u4:
    return size_t(elements / 2);
  case Element::q8_0:
    return size_t(elements / block_elements * q8_bytes);
  case Element::q4_0:
    return size_t(elements / block_elements * q4_bytes);
  default:
    return size_t(elements) * bytes_of(cache);
  }
}

int64_t number_index(Element cache, int64_t at) {
  if (cache == Element::u4) return at;
  const int64_t block = at / block_elements, place = at % block_elements;
  if (cache == Element::q8_0) return block * q8_bytes + 2 + place;
  return 2 * (block * q4_bytes + 2 + place % 16) + place / 16;
}

int64_t scale_index(Element cache, int64_t at) {
  return at / block_elements * (cache == Element::q8_0 ? q8_bytes : q4_bytes) / 2;
}

} // namespace sluice::conformance
