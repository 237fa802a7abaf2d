//===- oracle.cpp - attention in double precision, and a kernel's tolerance -----------------------------===//

#include "conformance/attention/oracle.h"

#include "conformance/attention/bound.h"
#include "conformance/attention/scores/scores.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace sluice::conformance {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// In four sums, which a processor adds at the same time.
template <typename Product> double sum_of(const double *a, const double *b, int count, Product product) {
  double sums[4] = {};
  const int whole = count / 4 * 4;
  for (int i = 0; i < whole; i += 4)
    for (int j = 0; j < 4; ++j)
      sums[j] += product(a[i + j], b[i + j]);
  for (int i = whole; i < count; ++i)
    sums[i - whole] += product(a[i], b[i]);
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

double dot(const double *a, const double *b, int count) {
  return sum_of(a, b, count, [](double x, double y) { return x * y; });
}

double absolute_dot(const double *a, const double *b, int count) {
  return sum_of(a, b, count, [](double x, double y) { return std::fabs(x * y); });
}

/// The magnitudes by which the matrix cores align FP8 numbers: all subnormal ones are aligned as 2^-7 is.
std::vector<double> as_aligned(const double *row, int count) {
  std::vector<double> magnitudes(row, row + count);
  for (double &x : magnitudes)
    if (x != 0) x = std::max(std::fabs(x), 0x1p-7);
  return magnitudes;
}

class Attention {
public:
  Attention(const Case &c, const Inputs &in) : c(c), in(in), sequences(c) {
    out.o.resize(size_t(c.batch) * c.q_len * c.q_heads * c.head_size.v);
    out.o_tolerance.resize(out.o.size());
    out.o_of_weightless.resize(out.o.size());
    out.lse.resize(size_t(c.batch) * c.q_heads * c.q_len);
    out.lse_tolerance.resize(out.lse.size());
    const auto v_row = size_t(c.head_size.v);
    weighted.resize(v_row);
    weighted_magnitude.resize(v_row);
    magnitude.resize(v_row);
    for (const ScoreChange *change : score_changes)
      if (change->is_in(c)) changes.push_back({*change, in.changes[*change]});
  }

  Expected run() {
    for (int b = 0; b < c.batch; ++b)
      for (int h = 0; h < c.q_heads; ++h)
        for (int i = 0; i < sequences.q_lengths[size_t(b)]; ++i) {
          kv_head = h / (c.q_heads / c.kv_heads);
          score_row(b, h, i);
          finish_row(b, h, i);
        }
    return std::move(out);
  }

private:
  /// A key of the row's prefix has the numbers from 0 on, one of its sequence those from own_begin on.
  const double *row_of(const std::vector<double> &prefix_rows, const std::vector<double> &own, int b, int key,
                       int size) const {
    return key < own_begin ? kv_row(prefix_rows, prefix, c.prefixes.keys, key, size)
                           : kv_row(own, b, c.kv_len, key - own_begin, size);
  }
  const double *key_row(int b, int key) const { return row_of(in.prefix_k, in.k, b, key, c.head_size.qk); }
  const double *key_terms(int b, int key) const {
    return row_of(in.prefix_k_terms, in.k_terms, b, key, c.head_size.qk);
  }
  const double *value_row(int b, int key) const { return row_of(in.prefix_v, in.v, b, key, c.head_size.v); }
  double k_scale(int b, int key) const {
    return is_per_key(c.k_scale) ? *row_of(in.prefix_k_scale, in.k_scale, b, key, 1)
                                 : in.k_scale[size_t(kv_head)];
  }
  double v_scale(int b, int key) const {
    return is_per_key(c.v_scale) ? *row_of(in.prefix_v_scale, in.v_scale, b, key, 1)
                                 : in.v_scale[size_t(kv_head)];
  }
  const double *kv_row(const std::vector<double> &tensor, int outer, int rows, int j, int size) const {
    return &tensor[((size_t(outer) * rows + j) * c.kv_heads + kv_head) * size];
  }

  /// Prefixes and sequences have tiles of their own.
  void find_prefix(int b, int i) {
    prefix = sequences.prefix_of(c, b, i);
    prefix_keys = prefix < 0 ? 0 : sequences.prefix_lengths[size_t(prefix)];
    own_begin = (prefix_keys + 63) / 64 * 64;
  }

  /// `terms` becomes the largest sum of magnitudes in which a term was one.
  double change(double score, const ScorePlace &place, double &terms) {
    double sum = std::fabs(score);
    for (Change &one : changes) {
      if (one.how.map) {
        score = one.how.map(place, one.numbers, score);
        sum = std::fabs(score);
      }
      if (!one.how.term) continue;
      one.term = one.how.term(place, one.numbers);
      score += one.term;
      sum += std::fabs(one.term);
      terms = std::max(terms, sum);
    }
    return score;
  }

  /// Fills keys, x and the magnitudes; leaves out keys whose score is -infinity, which have no weight.
  void score_row(int b, int h, int i) {
    const int d = c.head_size.qk;
    const double scale =
        (c.scale ? double(float(*c.scale)) : 1 / std::sqrt(double(d))) * in.q_scale[size_t(h)];
    const double *const q = &in.q[((size_t(b) * c.q_len + i) * c.q_heads + h) * d];
    keys.clear();
    weightless.clear();
    x.clear();
    row = {};
    find_prefix(b, i);
    for (int key = 0; key < own_begin + sequences.kv_lengths[size_t(b)]; ++key) {
      const int j = key - own_begin;
      if (j < 0 ? key >= prefix_keys : !is_visible(c, sequences, in, b, h, i, j)) continue;
      const double *const k = key_row(b, key);
      const double key_scale = k_scale(b, key);
      const double raw = scale * key_scale * dot(q, k, d);
      double terms = 0;
      const double changed = change(raw, {c, sequences, b, h, i, j}, terms);
      if (changed == -infinity) {
        weightless.push_back(key);
        continue;
      }
      keys.push_back(key);
      x.push_back(changed);
      const double products = has_fp8_queries(c)
                                  ? dot(as_aligned(q, d).data(), as_aligned(k, d).data(), d)
                                  : absolute_dot(q, in.k_terms.empty() ? k : key_terms(b, key), d);
      row.products = std::max(row.products, scale * key_scale * products);
      row.raw = std::max(row.raw, std::fabs(raw));
      row.score = std::max({row.score, std::fabs(raw), std::fabs(changed)});
      row.terms = std::max(row.terms, terms);
      for (const Change &one : changes)
        if (one.how.term) row.added[one.how] = std::max(row.added[one.how], std::fabs(one.term));
      if (is_per_key(c.v_scale)) {
        const double exponent = std::log(v_scale(b, key));
        row.v_exponent = std::max(row.v_exponent, std::fabs(exponent));
        row.score = std::max(row.score, std::fabs(changed + exponent));
      }
    }
    row.count_keys(keys);
  }

  /// -infinity without one.
  double extra_key(int h) {
    for (const Change &one : changes)
      if (one.how.extra_key) {
        row.extra_keys = 1;
        return one.how.extra_key(one.numbers, h);
      }
    return -infinity;
  }

  void finish_row(int b, int h, int i) {
    const size_t lse_at = (size_t(b) * c.q_heads + h) * c.q_len + i;
    const size_t o_at = ((size_t(b) * c.q_len + i) * c.q_heads + h) * c.head_size.v;
    const double sink = extra_key(h);
    if (keys.empty()) {
      set_lse(lse_at, sink, 0);
      see_weightless(b, o_at);
      return;
    }
    if (std::any_of(x.begin(), x.end(), [](double score) { return std::isnan(score); })) {
      set_lse(lse_at, std::nan(""), 0);
      std::fill_n(out.o.begin() + ptrdiff_t(o_at), c.head_size.v, std::nan(""));
      return;
    }
    if (row.extra_keys != 0) row.score = std::max(row.score, std::fabs(sink));
    const double largest = std::max(sink, *std::max_element(x.begin(), x.end()));
    double l = std::exp(sink - largest);
    std::fill(weighted.begin(), weighted.end(), 0.0);
    std::fill(weighted_magnitude.begin(), weighted_magnitude.end(), 0.0);
    std::fill(magnitude.begin(), magnitude.end(), 0.0);
    const bool per_key = is_per_key(c.v_scale);
    double largest_weight = 0; // of P with the scale of V
    for (size_t n = 0; n < keys.size(); ++n) {
      const double p = std::exp(x[n] - largest);
      const double *const v = value_row(b, keys[n]);
      const double value_scale = v_scale(b, keys[n]);
      largest_weight = std::max(largest_weight, p * value_scale);
      l += p;
      for (size_t e = 0; e < weighted.size(); ++e) {
        weighted[e] += p * value_scale * v[e];
        weighted_magnitude[e] += p * std::fabs(value_scale * v[e]);
        magnitude[e] += std::fabs((per_key ? 1 : value_scale) * v[e]);
      }
    }
    // The weight that P is relative to includes the scale.
    if (per_key)
      for (double &sum : magnitude)
        sum *= largest_weight;
    const double o_scale = in.o_scale[size_t(h)];
    const double lse = largest + std::log(l);
    const RowBound bound(c, row, l, lse);
    set_lse(lse_at, lse, bound.lse());
    for (size_t e = 0; e < weighted.size(); ++e) {
      const double o = weighted[e] / l / o_scale;
      constexpr double largest_fp8 = 240;
      out.o[o_at + e] = c.o_fp8 && !std::isnan(o) ? std::clamp(o, -largest_fp8, largest_fp8) : o;
      out.o_tolerance[o_at + e] = bound.o(o, weighted_magnitude[e] / l / o_scale, magnitude[e] / l / o_scale);
    }
    see_weightless(b, o_at);
  }

  /// A key without weight is still visible: NaN and infinity of its V can show.
  void see_weightless(int b, size_t o_at) {
    for (int key : weightless)
      for (size_t e = 0; e < weighted.size(); ++e)
        if (!std::isfinite(value_row(b, key)[e])) out.o_of_weightless[o_at + e] = true;
  }

  /// Both to base e.
  void set_lse(size_t at, double lse, double tolerance) {
    out.lse[at] = c.lse_base_2 ? lse * std::numbers::log2e : lse;
    out.lse_tolerance[at] =
        c.lse_base_2 && std::isfinite(lse) ? tolerance_in_base_2(lse, tolerance) : tolerance;
  }

  const Case &c;
  const Inputs &in;
  const Sequences sequences;
  Expected out;
  struct Change {
    const ScoreChange &how;
    const ScoreNumbers &numbers;
    double term = 0; // of the current key
  };
  std::vector<Change> changes; // those that the case has
  // State of the current row.
  int kv_head = 0;
  int prefix = -1, prefix_keys = 0, own_begin = 0;
  std::vector<int> keys;
  std::vector<double> x;       // their scores
  std::vector<int> weightless; // keys whose score is -infinity
  RowMagnitudes row;
  std::vector<double> weighted, weighted_magnitude, magnitude; // per element: sums of p v, p |v|, |v|
};

} // namespace

bool is_in_place(const Case &c, const Sequences &sequences, int b, int i, int j) {
  const int d = sequences.distance(b, i, j);
  const Span span = sequences.span_of(b, i + sequences.shifts[size_t(b)]);
  if (span.first <= j && j < span.end) return true;
  if (is_causal(c) && d > 0) return false;
  if (c.causal_by_sequence && sequences.causal[size_t(b)] && d > 0) return false;
  if (c.window_right >= 0 && d > c.window_right) return false;
  if (c.window_left >= 0 && d < -c.window_left && j >= c.sink_tokens) return false;
  return true;
}

bool is_visible(const Case &c, const Sequences &sequences, const Inputs &in, int b, int h, int i, int j) {
  if (!is_in_place(c, sequences, b, i, j)) return false;
  if (c.pages.missing && is_missing(c, b, h / (c.q_heads / c.kv_heads), j / c.pages.size)) return false;
  return std::ranges::none_of(score_changes, [&](const ScoreChange *change) {
    return change->hides && change->is_in(c) &&
           change->hides({c, sequences, b, h, i, j}, in.changes[*change]);
  });
}

Expected compute_expected(const Case &c, const Inputs &inputs) {
  return Attention(c, inputs).run();
}

} // namespace sluice::conformance
