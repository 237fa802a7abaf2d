//===- merge_oracle.h - the merge of one row, in double precision ---------------------------------------===//
//
// The header's formula, one element at a time.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "conformance/shared/numbers.h"

#include <sluice/sluice.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

namespace sluice::test {

inline constexpr double infinity = std::numeric_limits<double>::infinity();

/// Elements of a type as bytes.
inline uint32_t bytes_of(uint32_t type) {
  return type == SLUICE_F32 ? 4 : type == SLUICE_E4M3FNUZ ? 1 : 2;
}
inline double read_element(uint32_t type, const uint8_t *from) {
  if (type == SLUICE_F32) {
    float value;
    std::memcpy(&value, from, sizeof value);
    return value;
  }
  if (type == SLUICE_E4M3FNUZ) return conformance::decode_fp8(*from);
  uint16_t bits;
  std::memcpy(&bits, from, sizeof bits);
  return conformance::decode(type == SLUICE_F16 ? conformance::f16_format : conformance::bf16_format, bits);
}
inline void write_element(uint32_t type, uint8_t *to, double value) {
  if (type == SLUICE_F32) {
    const auto number = float(value);
    std::memcpy(to, &number, sizeof number);
    return;
  }
  if (type == SLUICE_E4M3FNUZ) {
    *to = conformance::encode_fp8(value);
    return;
  }
  const uint16_t bits =
      conformance::encode(type == SLUICE_F16 ? conformance::f16_format : conformance::bf16_format, value);
  std::memcpy(to, &bits, sizeof bits);
}

class MergedRow {
public:
  /// The parts' LSEs, in a base whose unit is worth `unit` in base e, and a sink's logit, or -infinity.
  MergedRow(std::vector<double> part_lses, double unit, double sink)
      : lses(std::move(part_lses)), unit(unit), maximum(sink) {
    for (double &value : lses) {
      value *= unit;
      if (!std::isnan(value)) maximum = std::max(maximum, value);
    }
    denominator = maximum == -infinity ? 0 : std::exp(sink - maximum);
    for (const double value : lses)
      if (value != -infinity) denominator += std::exp(value - maximum);
  }

  double lse() const { return denominator == 0 ? -infinity : (maximum + std::log(denominator)) / unit; }

  bool is_lse(double found) const {
    const double expected = lse();
    if (std::isnan(expected)) return std::isnan(found);
    if (std::isinf(expected)) return found == expected;
    return std::fabs(found - expected) <= 1e-6 * (4 + std::fabs(expected));
  }

  /// The merge of an element that the parts have as `values`.
  double element(const std::vector<double> &values) const { return merged(values).first; }

  /// `scale`: of an FP8 result, which is divided by it.
  bool is_element(double found, const std::vector<double> &values, uint32_t type, double scale = 1) const {
    const auto [whole, margin_of_whole] = merged(values);
    const double division_error = scale == 1 ? 0 : 3e-7 * std::fabs(whole);
    const double expected = whole / scale, margin = (margin_of_whole + division_error) / scale;
    if (std::isnan(expected)) return std::isnan(found);
    // One rounding: to the number itself or, near the middle, to its neighbour.
    uint8_t low[4], high[4];
    write_element(type, low, expected - margin);
    write_element(type, high, expected + margin);
    return found >= read_element(type, low) && found <= read_element(type, high);
  }

private:
  /// The error of F32 arithmetic: its exponents are less exact the larger they are, and values below its
  /// smallest normal number may become 0.
  std::pair<double, double> merged(const std::vector<double> &values) const {
    double sum = 0, margin = double(lses.size()) * 4e-38;
    for (size_t part = 0; part < lses.size(); ++part) {
      if (lses[part] == -infinity) continue;
      const double exponent = lses[part] - maximum;
      const double term = std::exp(exponent) / denominator * values[part];
      sum += term;
      margin += std::fabs(term) * (1e-6 + 2e-7 * std::fabs(exponent));
    }
    return {sum, margin};
  }

  std::vector<double> lses; // to base e
  double unit, maximum, denominator = 0;
};

} // namespace sluice::test
