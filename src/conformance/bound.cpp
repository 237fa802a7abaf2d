//===- bound.cpp - how far a kernel's rounding may take it from the exact result ------------------------===//

#include "bound.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace sluice::test {

namespace {

// Unit roundoff of f32, as the docs page writes it.
constexpr double u = 0x1p-24;

/// The page's `score`: absolute error of a score, and so relative error of a weight.
double score_error(const Case &c, const RowMagnitudes &row) {
  const int factors = (c.q_scale != Scale::none) + (c.k_scale != Scale::none);
  double error = row.products * (8 + 3.0 * c.head_size.qk / 8) + 10 * row.score + 2 * factors * row.raw;
  if (c.soft_cap != 0) error += 2 * row.raw + 12 * c.soft_cap;
  if (c.bias.type != BiasType::none) error += 2 * row.bias + row.terms;
  if (c.alibi) error += 3 * row.alibi + row.terms;
  return u * error;
}

} // namespace

void RowMagnitudes::count_keys(const std::vector<int> &visible) {
  keys = int(visible.size());
  const auto tiles_of = [&](int size) {
    int count = 0, last = -1;
    for (int key : visible) {
      count += key / size != last;
      last = key / size;
    }
    return count;
  };
  tiles = tiles_of(16);
  groups = std::min(keys, 8 * tiles_of(64));
}

RowBound::Roundings RowBound::roundings_of(const Case &c) {
  // f16 weights are truncated toward zero (11 significant bits); bf16 weights are rounded to nearest (8
  // bits). Values of FP8 become the type of Q, exactly, and so do the weights.
  if (c.dtype == Dtype::f16)
    return {.p = 0x1p-10, .p_absolute = 0x1p-24, .o = 0x1p-11, .o_absolute = 0x1p-25};
  return {.p = 0x1p-8, .p_absolute = 0x1p-126, .o = 0x1p-8, .o_absolute = 0x1p-134};
}

RowBound::RowBound(const Case &c, const RowMagnitudes &row, double l, double lse)
    : rounding(roundings_of(c)) {
  const double n = row.keys + c.sink_logits, t = row.tiles + c.sink_logits, X = row.score;
  const double weight = score_error(c, row) + u * (2 + t * (3 + 4 * X));
  const double sum = weight + u * n;
  // Keys of several tiles may have been split into parts, whose results were stored and merged.
  const double merge = row.tiles > 1 ? u * (11 * (X + std::log(n)) + 10 + 2 * t) : 0;
  of_weight = weight + u * (8 + 3.0 * row.groups) + merge;
  of_result = sum + u * (c.v_scale != Scale::none ? 5 : 3);
  of_lse = sum + merge + u * (4 * X + 4 * (1 + std::log(l)) + std::fabs(lse));
}

double RowBound::o(double o, double W, double V) const {
  const double before_store =
      W * (rounding.p + of_weight) + rounding.p_absolute * V + std::fabs(o) * of_result;
  return before_store + rounding.o * (std::fabs(o) + before_store) + rounding.o_absolute;
}

double tolerance_in_base_2(double lse, double tolerance) {
  return std::numbers::log2e * (tolerance + 2 * u * std::fabs(lse));
}

} // namespace sluice::test
