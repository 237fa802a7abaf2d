//===- check_reference.cpp - attention in double precision, and how far a kernel may be from it --------===//

#include "check_reference.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace check {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double u = 0x1p-24; // half a last place of F32

/// ggml's slope of a head.
double slope_of(const Case &of, int64_t head) {
  if (of.max_bias <= 0) return 1;
  int64_t power = 1; // the largest power of two that is at most the number of heads
  while (2 * power <= of.q_heads)
    power *= 2;
  return head < power ? std::exp2(-double(of.max_bias) * double(head + 1) / double(power))
                      : std::exp2(-double(of.max_bias) / 2 * double(2 * (head - power) + 1) / double(power));
}

double rounded(float value, ggml_type type) {
  return type == GGML_TYPE_BF16 ? ggml_bf16_to_fp32(ggml_fp32_to_bf16(value))
                                : ggml_fp16_to_fp32(ggml_fp32_to_fp16(value));
}

/// One row of one head, with the quantities of the bound, by their names in
/// docs/concepts/numerics.md.
struct Row {
  std::vector<double> x; // scores; -infinity of hidden keys
  double A = 0, R = 0, X = 0, B = 0, Z = 0;
  double n = 0; // visible keys

  double changes(const Case &of) const {
    double sum = 0;
    if (of.soft_cap > 0) sum += 2 * R + 12 * double(of.soft_cap);
    if (of.mask != Mask::none) sum += 2 * B + Z;
    if (of.max_bias > 0)
      sum += 12 * B; // a slope in F32, up to 2^-8 and so 11 u, and its product with the mask
    return sum;
  }
};

/// The dot product of Q's and K's row and the sum of its magnitudes.
std::pair<double, double> dot(const float *q, const float *k, int64_t elements, ggml_type round_to) {
  double sum = 0, magnitude = 0;
  for (int64_t e = 0; e < elements; ++e) {
    const double product =
        (round_to == GGML_TYPE_F32 ? double(q[e]) : rounded(q[e], round_to)) * double(k[e]);
    sum += product;
    magnitude += std::fabs(product);
  }
  return {sum, magnitude};
}

Row scores(const Case &of, const Numbers &numbers, int64_t sequence, int64_t head, int64_t row,
           bool rounds_q) {
  const double slope = slope_of(of, head);
  const int64_t kv_head = head / (of.q_heads / of.kv_heads);
  const float *const q = &numbers.q[((sequence * of.q_heads + head) * of.rows + row) * of.head_dim_qk];
  const float *const k = numbers.k.data() + (sequence * of.kv_heads + kv_head) * of.keys * of.head_dim_qk;
  const float *const mask = numbers.mask.empty()
                                ? nullptr
                                : &numbers.mask[((sequence * of.q_heads + head) * of.rows + row) * of.keys];
  Row result;
  for (int64_t key = 0; key < of.keys; ++key) {
    const double bias = mask ? slope * double(mask[key]) : 0;
    if (bias == -infinity) {
      result.x.push_back(-infinity);
      continue;
    }
    const auto [sum, magnitude] =
        dot(q, k + key * of.head_dim_qk, of.head_dim_qk, rounds_q ? of.kv_type : GGML_TYPE_F32);
    const double raw = double(numbers.scale) * sum;
    const double capped = of.soft_cap > 0 ? double(of.soft_cap) * std::tanh(raw / double(of.soft_cap)) : raw;
    result.x.push_back(capped + bias);
    result.n += 1;
    result.A = std::max(result.A, double(numbers.scale) * magnitude);
    result.R = std::max(result.R, std::fabs(raw));
    result.B = std::max(result.B, std::fabs(bias));
    result.Z = std::max(result.Z, std::fabs(capped) + std::fabs(bias));
    result.X = std::max({result.X, result.R, std::fabs(capped + bias)});
  }
  if (of.sinks) result.X = std::max(result.X, std::fabs(double(numbers.sinks[head])));
  return result;
}

/// Relative errors of a row's weights and of their sum, and what O's elements have of them.
class Errors {
public:
  Errors(const Case &of, const Row &row)
      : bf16(of.kv_type == GGML_TYPE_BF16), element(ggml_is_quantized(of.kv_type) ? 0x1p-11 : 0), n(row.n) {
    const double sink = of.sinks ? 1 : 0, d = double(of.head_dim_qk);
    const double tiles = std::ceil(double(of.keys) / 16);
    const double t = tiles + sink;
    const double score = u * (row.A * (8 + 3 * d / 8) + 10 * row.X + row.changes(of)) + row.A * element;
    weight = score + u * (2 + t * (3 + 4 * row.X));
    sum = weight + u * (n + sink + 2);
    merge = tiles > 1 ? u * (11 * (row.X + std::log(std::max(1.0, n + sink))) + 10 + 32 * std::log(2) + 2 * t)
                      : 0;
  }

  /// W is the mean of |v| by weight, V the sum of |v| divided by the denominator.
  double element_bound(double W, double V, double o) const {
    const double p = 0.653 * (bf16 ? 0x1p-7 : 0x1p-10), a = bf16 ? 0x1p-126 : 0x1p-24;
    return W * (p + element + weight + u * (8 + 3 * n) + merge) + a * V + std::fabs(o) * (sum + 3 * u) +
           0x1p-134;
  }

private:
  bool bf16;
  double element; ///< of blocks: an element is rounded to F16
  double n, weight, sum, merge;
};

void add_row(const Case &of, const Numbers &numbers, int64_t sequence, int64_t head, const Row &row,
             Expected &to) {
  double largest = -infinity;
  for (double x : row.x)
    largest = std::max(largest, x);
  if (of.sinks) largest = std::max(largest, double(numbers.sinks[head]));
  std::vector<double> weights;
  double denominator = of.sinks ? std::exp(double(numbers.sinks[head]) - largest) : 0;
  for (double x : row.x) {
    weights.push_back(x == -infinity ? 0 : std::exp(x - largest));
    denominator += weights.back();
  }
  const int64_t kv_head = head / (of.q_heads / of.kv_heads);
  const float *const v = numbers.v.data() + (sequence * of.kv_heads + kv_head) * of.keys * of.head_dim_v;
  const Errors errors(of, row);
  for (int64_t e = 0; e < of.head_dim_v; ++e) {
    double o = 0, W = 0, V = 0;
    for (int64_t key = 0; key < of.keys; ++key) {
      if (row.x[key] == -infinity) continue;
      const double value = v[key * of.head_dim_v + e];
      o += weights[key] * value / denominator;
      W += weights[key] * std::fabs(value) / denominator;
      V += std::fabs(value) / denominator;
    }
    to.o.push_back(o);
    to.bound.push_back(row.n == 0 ? 0 : errors.element_bound(W, V, o));
  }
}

} // namespace

Expected attention(const Case &of, const Numbers &numbers, bool rounds_q) {
  Expected expected;
  for (int64_t sequence = 0; sequence < of.sequences; ++sequence)
    for (int64_t row = 0; row < of.rows; ++row)
      for (int64_t head = 0; head < of.q_heads; ++head)
        add_row(of, numbers, sequence, head, scores(of, numbers, sequence, head, row, rounds_q), expected);
  return expected;
}

} // namespace check
