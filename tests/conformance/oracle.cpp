//===- oracle.cpp - attention in double precision, and how far a kernel may be from it ------------------===//

#include "oracle.h"

#include "support/numbers.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace sluice::test {

namespace {

// Numbers from the name of a case: splitmix64 from an FNV-1a hash, the same on every machine.
class Random {
public:
  explicit Random(std::string_view name) {
    for (char c : name)
      state = (state ^ uint8_t(c)) * 0x100000001b3;
  }
  double uniform() {
    uint64_t z = state += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return double((z ^ z >> 31) >> 11) * 0x1p-53;
  }
  /// Sum of twelve uniform numbers: normal enough, and exact arithmetic everywhere, unlike log and cos.
  double normal() {
    double sum = -6;
    for (int i = 0; i < 12; ++i)
      sum += uniform();
    return sum;
  }

private:
  uint64_t state = 0xcbf29ce484222325;
};

const NumberFormat &format_of(Dtype dtype) {
  return dtype == Dtype::f16 ? f16_format : bf16_format;
}

void round_to(const NumberFormat &format, std::vector<double> &values) {
  for (double &value : values)
    value = decode(format, encode(format, value));
}

double dot(const double *a, const double *b, int count) {
  double sums[4] = {};
  for (int i = 0; i < count; i += 4)
    for (int j = 0; j < 4; ++j)
      sums[j] += a[i + j] * b[i + j];
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

double absolute_dot(const double *a, const double *b, int count) {
  double sums[4] = {};
  for (int i = 0; i < count; i += 4)
    for (int j = 0; j < 4; ++j)
      sums[j] += std::fabs(a[i + j] * b[i + j]);
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

// Unit roundoff of f32, as the docs page writes it.
constexpr double u = 0x1p-24;

struct Roundings {
  double p;          // relative error of a weight P when it becomes the matrix cores' operand
  double p_absolute; // and its absolute error where it is subnormal
  double o;          // relative error of an output when it is stored
  double o_absolute; // half the spacing of the output's subnormals
};

Roundings roundings_of(Dtype dtype) {
  // f16 weights are truncated toward zero (11 significant bits); bf16 weights are rounded to nearest (8
  // bits).
  if (dtype == Dtype::f16) return {.p = 0x1p-10, .p_absolute = 0x1p-24, .o = 0x1p-11, .o_absolute = 0x1p-25};
  return {.p = 0x1p-8, .p_absolute = 0x1p-126, .o = 0x1p-8, .o_absolute = 0x1p-134};
}

} // namespace

Inputs make_inputs(const Case &c) {
  Random random(c.name);
  auto fill = [&](size_t count, double deviation) {
    std::vector<double> values(count);
    for (double &value : values)
      value = deviation * random.normal();
    return values;
  };
  const size_t kv_batches = c.layout == Layout::broadcast ? 1 : size_t(c.batch);
  const size_t row = size_t(c.head_size);
  const double q_deviation = c.pattern == Pattern::peaked ? 4 : c.pattern == Pattern::tiny ? 0x1p-14 : 1;
  const double v_deviation = c.pattern == Pattern::tiny ? 0x1p-14 : 1;
  Inputs in{.q = fill(size_t(c.batch) * c.q_len * c.q_heads * row, q_deviation),
            .k = fill(kv_batches * c.kv_len * c.kv_heads * row, q_deviation),
            .v = fill(kv_batches * c.kv_len * c.kv_heads * row, v_deviation)};
  if (c.pattern == Pattern::uniform) std::fill(in.k.begin(), in.k.end(), 0.0);
  if (c.pattern == Pattern::rising || c.pattern == Pattern::falling) {
    // A common direction, along which every query is positive, carries a score that is linear in the key.
    for (size_t i = 0; i < in.q.size(); i += row)
      in.q[i] = 4;
    const size_t token = row * c.kv_heads;
    for (size_t i = 0; i < in.k.size(); i += row) {
      const double place = double(i / token % c.kv_len) / c.kv_len;
      in.k[i] = 64 * (c.pattern == Pattern::rising ? place : 1 - place);
    }
  }
  for (std::vector<double> *values : {&in.q, &in.k, &in.v})
    round_to(format_of(c.dtype), *values);
  if (c.layout == Layout::broadcast)
    for (std::vector<double> *values : {&in.k, &in.v}) {
      const std::vector<double> once = *values;
      for (int batch = 1; batch < c.batch; ++batch)
        values->insert(values->end(), once.begin(), once.end());
    }
  return in;
}

int visible_keys(const Case &c, int row) {
  int last = c.kv_len - 1;
  if (c.mask == Mask::bottom_right) last = std::min(last, row + c.kv_len - c.q_len);
  if (c.mask == Mask::top_left) last = std::min(last, row);
  return std::max(last + 1, 0);
}

Expected compute_expected(const Case &c, const Inputs &in) {
  const int d = c.head_size;
  const double scale = c.scale != 0 ? double(float(c.scale)) : 1 / std::sqrt(double(d));
  const Roundings rounding = roundings_of(c.dtype);
  Expected out;
  out.o.resize(in.q.size());
  out.o_tolerance.resize(in.q.size());
  out.lse.resize(size_t(c.batch) * c.q_heads * c.q_len);
  out.lse_tolerance.resize(out.lse.size());
  std::vector<double> x(c.kv_len), weighted(d), weighted_magnitude(d), magnitude(d);

  for (int b = 0; b < c.batch; ++b)
    for (int h = 0; h < c.q_heads; ++h)
      for (int i = 0; i < c.q_len; ++i) {
        const int kv_head = h / (c.q_heads / c.kv_heads);
        const size_t o_at = ((size_t(b) * c.q_len + i) * c.q_heads + h) * d;
        const size_t lse_at = (size_t(b) * c.q_heads + h) * c.q_len + i;
        const int n = visible_keys(c, i);
        if (n == 0) { // O = 0 and LSE = -inf, exactly
          out.lse[lse_at] = -std::numeric_limits<double>::infinity();
          continue;
        }
        auto kv_row = [&](const std::vector<double> &tensor, int j) {
          return &tensor[((size_t(b) * c.kv_len + j) * c.kv_heads + kv_head) * d];
        };
        double largest = -std::numeric_limits<double>::infinity(); // x_max
        double X = 0;                                              // max |x_j|
        double A = 0;                                              // max scale * sum |q k_j|
        for (int j = 0; j < n; ++j) {
          x[j] = scale * dot(&in.q[o_at], kv_row(in.k, j), d);
          largest = std::max(largest, x[j]);
          X = std::max(X, std::fabs(x[j]));
          A = std::max(A, scale * absolute_dot(&in.q[o_at], kv_row(in.k, j), d));
        }
        double l = 0;
        std::fill(weighted.begin(), weighted.end(), 0.0);
        std::fill(weighted_magnitude.begin(), weighted_magnitude.end(), 0.0);
        std::fill(magnitude.begin(), magnitude.end(), 0.0);
        for (int j = 0; j < n; ++j) {
          const double p = std::exp(x[j] - largest);
          const double *const v = kv_row(in.v, j);
          l += p;
          for (int e = 0; e < d; ++e) {
            weighted[e] += p * v[e];
            weighted_magnitude[e] += p * std::fabs(v[e]);
            magnitude[e] += std::fabs(v[e]);
          }
        }
        const double lse = largest + std::log(l);
        out.lse[lse_at] = lse;

        // The bound, term by term as in docs/concepts/numerics.md.
        const double tiles = std::ceil(n / 64.0);
        const double score = u * (A * (8 + 3.0 * d / 8) + 10 * X);
        const double weight = score + u * (2 + tiles * (3 + 4 * X));
        const double sum = weight + u * n;
        out.lse_tolerance[lse_at] = sum + u * (4 * X + 4 * (1 + std::log(l)) + std::fabs(lse));
        for (int e = 0; e < d; ++e) {
          const double o = weighted[e] / l, W = weighted_magnitude[e] / l;
          const double before_store = W * (rounding.p + weight + u * (8 + 3.0 * n / 8)) +
                                      rounding.p_absolute * magnitude[e] / l + std::fabs(o) * (sum + 3 * u);
          out.o[o_at + e] = o;
          out.o_tolerance[o_at + e] =
              before_store + rounding.o * (std::fabs(o) + before_store) + rounding.o_absolute;
        }
      }
  return out;
}

} // namespace sluice::test
