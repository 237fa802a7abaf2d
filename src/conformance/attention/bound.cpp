//===- bound.cpp - how far a kernel's rounding may take it from the exact result ------------------------===//

#include "conformance/attention/bound.h"

#include "conformance/attention/blocks.h"
#include "conformance/attention/scores/scores.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace sluice::conformance {

namespace {

// Unit roundoff of f32, as the docs page writes it.
constexpr double u = 0x1p-24;

/// The error of a matrix-core sum of that many products, whose groups can have `groups` sums, relative to the
/// sum of their magnitudes, in u.
double sum_error(const Case &c, double groups) {
  return (has_fp8_queries(c) ? 10 : 8) + 3 * groups;
}

// A number x of 11 significant bits in f16 and 8 in bf16 becomes x (1 + d) and is truncated after 1 / 2.88 of
// a last place is added.
constexpr double cut = 1 - 1 / 2.88;

double cutting_error(const Case &c) {
  return cut * (c.dtype == Dtype::f16 ? 0x1p-10 : 0x1p-7);
}

/// The error of an element of V of blocks, relative to it: the element is cut, and if something is
/// subtracted, its scale, with 1 + d, is rounded to 13 bits. Elements of K are not made.
double element_error(const Case &c) {
  if (!is_in_blocks(c)) return 0;
  return 1.01 * (cutting_error(c) + (c.cache == Cache::q8_0 ? 0 : 0x1p-13));
}

/// The page's `score`: absolute error of a score, and so relative error of a weight.
double score_error(const Case &c, const RowMagnitudes &row) {
  const int scales = (c.q_scale != Scale::none) + (c.k_scale != Scale::none);
  // Blocks are summed one by one, and their sums again: no fewer roundings than for two of them.
  const double summed = is_in_blocks(c) ? std::max(c.head_size.qk, 64) : c.head_size.qk;
  double error = row.products * sum_error(c, summed / (has_fp8_queries(c) ? 16.0 : 8.0)) + 10 * row.score +
                 2 * scales * row.raw;
  for (const ScoreChange *change : score_changes)
    if (change->error && change->is_in(c)) error += change->error(c, row, row.added[*change]);
  if (is_per_key(c.v_scale)) error += 4 * row.v_exponent + row.score + 4;
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
  // A weight P is cut. FP8 values convert exactly to the type of Q, and so do the weights, unless Q is FP8
  // too.
  Roundings roundings = c.dtype == Dtype::f16
                            ? Roundings{.p_absolute = 0x1p-24, .o = 0x1p-11, .o_absolute = 0x1p-25}
                            : Roundings{.p_absolute = 0x1p-126, .o = 0x1p-8, .o_absolute = 0x1p-134};
  roundings.p = cutting_error(c);
  // 2^7 P has 4 significant bits; subnormal FP8 numbers are multiples of 2^-10.
  if (has_fp8_queries(c)) {
    roundings.p = 0x1p-4;
    roundings.p_absolute = 0x1p-18;
  }
  roundings.element_error = conformance::element_error(c);
  // The sum is stored as it is. Below the normal numbers of f32 each of its roundings, of which there are
  // fewer than 2^16, is at most half of 2^-149.
  if (c.o_f32) {
    roundings.o = 0;
    roundings.o_absolute = 0x1p-134;
  }
  if (c.o_fp8) {
    roundings.o = 0x1p-4;
    roundings.o_absolute = 0x1p-11;
  }
  return roundings;
}

RowBound::RowBound(const Case &c, const RowMagnitudes &row, double l, double lse)
    : rounding(roundings_of(c)) {
  const double n = row.keys + row.extra_keys, t = row.tiles + row.extra_keys, X = row.score;
  const double weight = score_error(c, row) + u * (2 + t * (3 + 4 * X));
  const double sum = weight + u * (n + 2); // 2 for removing the 1 + d
  // The base of the exponentials may be less than the largest score, and their sum larger accordingly.
  const double excess = has_fp8_queries(c) ? 0 : 8 * std::numbers::ln2;
  // Keys of several tiles may have been split, with results that were stored and merged.
  const double merge = row.tiles > 1 ? u * (11 * (X + std::log(n)) + 10 + 4 * excess + 2 * t) : 0;
  // Subnormal FP8 numbers, P's and V's, are aligned as if they were up to 8 times as large.
  const double subnormals = has_fp8_queries(c) ? 64 : 1;
  weight_error = weight + u * subnormals * sum_error(c, row.groups) + merge;
  result_error = sum + u * ((c.v_scale != Scale::none ? 5 : 3) + (c.o_scale != Scale::none ? 3 : 0));
  lse_error = sum + merge + u * (4 * X + 4 * (1 + excess + std::log(l)) + std::fabs(lse));
}

double RowBound::o(double o, double W, double V) const {
  const double before_store = W * (rounding.p + weight_error + rounding.element_error) +
                              rounding.p_absolute * V + std::fabs(o) * result_error;
  return before_store + rounding.o * (std::fabs(o) + before_store) + rounding.o_absolute;
}

double tolerance_in_base_2(double lse, double tolerance) {
  return std::numbers::log2e * (tolerance + 2 * u * std::fabs(lse));
}

} // namespace sluice::conformance
