//===- accuracy.cpp - the difference between results and expectations -----------------------------------===//

#include "tools/sluice/accuracy.h"

#include "calls/values.h"
#include "support/half.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <limits>

namespace sluice::tools {

namespace {

std::vector<float> to_floats(const NpyArray &array) {
  std::vector<float> values;
  values.reserve(array.element_count());
  for (uint16_t bits : array.elements<uint16_t>())
    values.push_back(array.type == NpyType::u16 ? support::bf16_to_float(bits) : support::f16_to_float(bits));
  return values;
}

/// Computes attention of the call with F32 tensors, so that nothing is rounded to 16 bits. Returns O and LSE
/// as floats.
void reference_call(const CallOptions &options, const CallInputs &inputs, std::vector<float> &q,
                    std::vector<float> &k, std::vector<float> &v, std::vector<float> &o,
                    std::vector<float> &lse) {
  calls::Problem problem = make_problem(options, inputs);
  problem.q_type = problem.k_type = problem.v_type = problem.o_type = SLUICE_F32;
  o.resize(size_t(inputs.batch() * inputs.q_len() * inputs.q_heads() * inputs.head_dim_v()));
  lse.resize(size_t(inputs.batch() * inputs.q_len() * inputs.q_heads()));
  const calls::Args args = make_args(options, inputs, q.data(), k.data(), v.data(), o.data(), lse.data());
  sluice_error error = make_error();
  check(sluice_attention_reference(calls::ProblemValues(problem), calls::ArgsValues(problem, args), &error),
        error);
}

constexpr double u = 0x1p-24; // unit roundoff of f32

/// The bound of docs/concepts/numerics.md, row by row, with the page's names.
class Bound {
public:
  Bound(const CallOptions &options, const CallInputs &inputs, std::span<const float> q,
        std::span<const float> k, std::span<const float> v, Reference &out)
      : options(options), inputs(inputs), q(q), k(k), v(v), out(out), x(size_t(inputs.kv_len())),
        columns(size_t(inputs.head_dim_v())) {
    out.o_tolerance.assign(out.o.size(), 0);
    out.o_limits.assign(out.o.size(), 0);
    out.lse_tolerance.assign(out.lse.size(), 0);
    out.lse_limits.assign(out.lse.size(), 0);
    for (int64_t b = 0; b < inputs.batch(); ++b)
      for (int64_t h = 0; h < inputs.q_heads(); ++h) {
        for (int64_t i = 0; i < inputs.q_len(); ++i)
          bound_row(b, h, i);
        mark_reach_of_v(b, h);
      }
  }

private:
  struct Column {
    double weighted = 0;  // sum of P_j |v_j|, not yet divided by l
    double magnitude = 0; // sum of |v_j|
    double largest = 0;   // of |v_j|
  };

  const float *kv_row(std::span<const float> tensor, int64_t b, int64_t h, int64_t j, int64_t dim) const {
    const int64_t kv_head = h / (inputs.q_heads() / inputs.kv_heads());
    return &tensor[size_t(((b * inputs.kv_len() + j) * inputs.kv_heads() + kv_head) * dim)];
  }
  size_t o_at(int64_t b, int64_t h, int64_t i) const {
    return size_t(((b * inputs.q_len() + i) * inputs.q_heads() + h) * inputs.head_dim_v());
  }
  int64_t visible_keys(int64_t i) const {
    if (!options.causal) return inputs.kv_len();
    const int64_t shift = options.alignment == "top-left" ? 0 : inputs.kv_len() - inputs.q_len();
    return std::clamp<int64_t>(i + shift + 1, 0, inputs.kv_len());
  }

  void bound_row(int64_t b, int64_t h, int64_t i) {
    const size_t lse_at = size_t((b * inputs.q_heads() + h) * inputs.q_len() + i);
    const int64_t visible = visible_keys(i), dim = inputs.head_dim_qk();
    const double scale = options.scale ? double(*options.scale) : 1 / std::sqrt(double(dim));
    const float *const q_row = &q[size_t(((b * inputs.q_len() + i) * inputs.q_heads() + h) * dim)];
    double largest = -infinity, X = 0, A = 0;
    for (int64_t j = 0; j < visible; ++j) {
      const float *const k_row = kv_row(k, b, h, j, dim);
      double dot = 0, magnitudes = 0;
      for (int64_t e = 0; e < dim; ++e) {
        const double product = double(q_row[e]) * k_row[e];
        dot += product;
        magnitudes += std::fabs(product);
      }
      x[size_t(j)] = scale * dot;
      if (std::isnan(x[size_t(j)]) || x[size_t(j)] == infinity) return; // the whole row is NaN
      if (x[size_t(j)] == -infinity) continue;                          // a key of weight 0
      largest = std::max(largest, x[size_t(j)]);
      X = std::max(X, std::fabs(x[size_t(j)]));
      A = std::max(A, scale * magnitudes);
    }
    if (largest == -infinity) return; // no key has a weight: exactly 0 and -infinity

    double l = 0;
    columns.assign(columns.size(), {});
    for (int64_t j = 0; j < visible; ++j) {
      const double p = std::exp(x[size_t(j)] - largest);
      const float *const v_row = kv_row(v, b, h, j, inputs.head_dim_v());
      l += p;
      for (size_t e = 0; e < columns.size(); ++e) {
        const double size = std::fabs(v_row[e]);
        if (!std::isfinite(size)) continue; // only its elements of O are not finite
        columns[e].weighted += p * size;
        columns[e].magnitude += size;
        columns[e].largest = std::max(columns[e].largest, size);
      }
    }

    const bool f16 = !options.bf16;
    const double p_rounding = (1 - 1 / 2.88) * (f16 ? 0x1p-10 : 0x1p-7);
    const double p_absolute = f16 ? 0x1p-24 : 0x1p-126;
    const double o_rounding = f16 ? 0x1p-11 : 0x1p-8, o_absolute = f16 ? 0x1p-25 : 0x1p-134;
    const double n = double(visible), d = double(dim), tiles = std::ceil(n / double(tile_kv));
    const double score = u * (A * (8 + 3 * d / 8) + 10 * X);
    const double weight = score + u * (2 + tiles * (3 + 4 * X));
    const double sum = weight + u * (n + 2);
    // The reference's own LSE and O are rounded to f32, which adds one u to each.
    if (std::isfinite(out.lse[lse_at]))
      out.lse_tolerance[lse_at] = sum + u * (4 * X + 4 * (1 + std::log(l)) + 2 * std::fabs(out.lse[lse_at]));
    // Scores beyond f32 have no bound. Otherwise |LSE| is trivially at most X + ln n.
    const bool overflows = A * log2_e > std::numeric_limits<float>::max();
    if (overflows || out.lse_tolerance[lse_at] > X + std::log(n) + 1) out.lse_limits[lse_at] |= unbounded;
    for (size_t e = 0; e < columns.size(); ++e) {
      const size_t at = o_at(b, h, i) + e;
      if (!std::isfinite(out.o[at])) continue;
      const double size = std::fabs(out.o[at]), W = columns[e].weighted / l;
      const double before_store = W * (p_rounding + weight + u * (8 + 3 * n / 8)) +
                                  p_absolute * columns[e].magnitude / l + size * (sum + 4 * u);
      out.o_tolerance[at] = before_store + o_rounding * (size + before_store) + o_absolute;
      // |O| is trivially at most the largest |v|. A column of zeros stays 0 with any weights.
      if (columns[e].largest > 0 && (overflows || out.o_tolerance[at] > columns[e].largest))
        out.o_limits[at] |= unbounded;
    }
  }

  /// The header's rule: V at key j reaches the rows that see j. An infinity times a weight that is rounded to
  /// 0 is NaN.
  void mark_reach_of_v(int64_t b, int64_t h) {
    for (int64_t j = 0; j < inputs.kv_len(); ++j) {
      const float *const v_row = kv_row(v, b, h, j, inputs.head_dim_v());
      for (size_t e = 0; e < columns.size(); ++e) {
        if (std::isfinite(v_row[e])) continue;
        for (int64_t i = 0; i < inputs.q_len(); ++i)
          if (visible_keys(i) > j) out.o_limits[o_at(b, h, i) + e] |= may_be_nan;
      }
    }
  }

  static constexpr int64_t tile_kv = 64;
  static constexpr double infinity = std::numeric_limits<double>::infinity();
  static constexpr double log2_e = 1.4426950408889634;

  const CallOptions &options;
  const CallInputs &inputs;
  std::span<const float> q, k, v;
  Reference &out;
  std::vector<double> x; // of one row
  std::vector<Column> columns;
};

} // namespace

Reference compute_reference(const CallOptions &options, const CallInputs &inputs) {
  std::vector<float> q = to_floats(inputs.q), k = to_floats(inputs.k), v = to_floats(inputs.v), o, lse;
  reference_call(options, inputs, q, k, v, o, lse);
  Reference out;
  out.o.assign(o.begin(), o.end());
  out.lse.assign(lse.begin(), lse.end());
  const Bound bound(options, inputs, q, k, v, out); // fills in the bounds of `out`
  return out;
}

ErrorFigures measure(std::span<const double> got, std::span<const double> expected,
                     std::span<const double> tolerance, std::span<const uint8_t> limits) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  ErrorFigures figures{.count = got.size()};
  double squares = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    const uint8_t limit = limits.empty() ? 0 : limits[i];
    if (limit & unbounded) ++figures.unbounded;
    if (got[i] == expected[i] || (std::isnan(got[i]) && std::isnan(expected[i]))) continue;
    if (std::isnan(got[i]) && limit & may_be_nan) {
      ++figures.not_judged;
      continue;
    }
    const bool finite = std::isfinite(got[i]) && std::isfinite(expected[i]);
    const double error = finite ? std::fabs(got[i] - expected[i]) : infinity;
    const double ratio = finite && tolerance[i] > 0 ? error / tolerance[i] : infinity;
    figures.max_absolute = std::max(figures.max_absolute, error);
    if (finite && expected[i] != 0)
      figures.max_relative = std::max(figures.max_relative, error / std::fabs(expected[i]));
    squares += error * error;
    if (ratio > 1) ++figures.beyond;
    if (ratio > figures.worst_ratio) {
      figures.worst_ratio = ratio;
      figures.worst_at = i;
    }
  }
  figures.rms = got.empty() ? 0 : std::sqrt(squares / double(got.size()));
  return figures;
}

std::vector<double> to_numbers(const NpyArray &array) {
  std::vector<double> numbers;
  numbers.reserve(array.element_count());
  switch (array.type) {
  case NpyType::f16:
    for (uint16_t bits : array.elements<uint16_t>())
      numbers.push_back(support::f16_to_float(bits));
    break;
  case NpyType::u16:
    for (uint16_t bits : array.elements<uint16_t>())
      numbers.push_back(support::bf16_to_float(bits));
    break;
  case NpyType::f32:
    for (float value : array.elements<float>())
      numbers.push_back(value);
    break;
  case NpyType::f64:
    for (double value : array.elements<double>())
      numbers.push_back(value);
    break;
  default:
    throw NpyError(fmt::format("attention has no tensors of {}", npy_type_name(array.type)));
  }
  return numbers;
}

std::string describe(const std::string &name, const ErrorFigures &figures, std::span<const int64_t> shape) {
  std::vector<int64_t> place(shape.size());
  size_t rest = figures.worst_at;
  for (size_t i = shape.size(); i-- > 0;) {
    place[i] = int64_t(rest % size_t(shape[i]));
    rest /= size_t(shape[i]);
  }
  std::string text =
      fmt::format("{:<4}{:>9} elements  max abs {:.3g}  max rel {:.3g}  rms {:.3g}  worst {:.2f} of its "
                  "tolerance at {}",
                  name, figures.count, figures.max_absolute, figures.max_relative, figures.rms,
                  figures.worst_ratio, shape_text(place));
  if (figures.beyond != 0)
    text += fmt::format("  WRONG: {} beyond tolerance", figures.beyond);
  else
    text += figures.passed() ? "  ok" : "  UNDECIDED";
  if (figures.unbounded != 0)
    text += fmt::format(
        "\n    {} elements have a tolerance larger than any value they can have: with scores of this "
        "size, rounding errors can change the result completely, so the bound does not check them",
        figures.unbounded);
  if (figures.not_judged != 0)
    text +=
        fmt::format("\n    {} elements not checked: they are NaN, and a NaN or infinity in V may reach them",
                    figures.not_judged);
  return text;
}

} // namespace sluice::tools
