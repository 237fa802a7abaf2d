//===- accuracy.cpp - how far results are from what they should be --------------------------------------===//

#include "tools/accuracy.h"

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

/// Attention of the call with F32 tensors, so that nothing is rounded to 16 bits. O and LSE come back as
/// floats.
void reference_call(const CallOptions &options, const CallInputs &inputs, std::vector<float> &q,
                    std::vector<float> &k, std::vector<float> &v, std::vector<float> &o,
                    std::vector<float> &lse) {
  sluice_problem problem = make_problem(options, inputs);
  problem.q_type = problem.k_type = problem.v_type = problem.o_type = SLUICE_F32;
  o.resize(size_t(inputs.batch() * inputs.q_len() * inputs.q_heads() * inputs.head_dim_v()));
  lse.resize(size_t(inputs.batch() * inputs.q_len() * inputs.q_heads()));
  const sluice_args args = make_args(options, inputs, q.data(), k.data(), v.data(), o.data(), lse.data());
  sluice_error error = make_error();
  check(sluice_reference(&problem, &args, &error), error);
}

/// The largest Euclidean norm of the rows of a head: [batch * heads] of a [batch, token, head, dim] tensor.
std::vector<double> largest_norms(const std::vector<float> &values, const std::vector<int64_t> &shape) {
  const size_t heads = size_t(shape[2]), dim = size_t(shape[3]);
  std::vector<double> norms(size_t(shape[0]) * heads, 0);
  for (size_t row = 0; row * dim < values.size(); ++row) {
    double squares = 0;
    for (size_t i = 0; i < dim; ++i)
      squares += double(values[row * dim + i]) * values[row * dim + i];
    double &largest = norms[row / (heads * size_t(shape[1])) * heads + row % heads];
    largest = std::max(largest, std::sqrt(squares));
  }
  return norms;
}

constexpr double u = 0x1p-24; // unit roundoff of f32

} // namespace

Reference compute_reference(const CallOptions &options, const CallInputs &inputs) {
  std::vector<float> q = to_floats(inputs.q), k = to_floats(inputs.k), v = to_floats(inputs.v);
  std::vector<float> o, lse, magnitude, same_lse;
  reference_call(options, inputs, q, k, v, o, lse);
  // W of the bound is attention with |v| in place of v.
  double v_largest = 0;
  for (float &value : v) {
    value = std::fabs(value);
    v_largest = std::max(v_largest, double(value));
  }
  reference_call(options, inputs, q, k, v, magnitude, same_lse);

  const bool f16 = !options.bf16;
  const double p_rounding = f16 ? 0x1p-10 : 0x1p-8, p_absolute = f16 ? 0x1p-24 : 0x1p-126;
  const double o_rounding = f16 ? 0x1p-11 : 0x1p-8, o_absolute = f16 ? 0x1p-25 : 0x1p-134;
  const double n = double(inputs.kv_len()), tiles = std::ceil(n / 64), d = double(inputs.head_dim_qk());
  const double scale = options.scale != 0 ? double(options.scale) : 1 / std::sqrt(d);
  const std::vector<double> k_norms = largest_norms(k, inputs.k.shape);
  const int64_t group = inputs.q_heads() / inputs.kv_heads();

  Reference out;
  out.o.assign(o.begin(), o.end());
  out.lse.assign(lse.begin(), lse.end());
  out.o_tolerance.resize(o.size());
  out.lse_tolerance.resize(lse.size());
  size_t row = 0;
  for (int64_t b = 0; b < inputs.batch(); ++b)
    for (int64_t i = 0; i < inputs.q_len(); ++i)
      for (int64_t h = 0; h < inputs.q_heads(); ++h, ++row) {
        const size_t lse_at = size_t((b * inputs.q_heads() + h) * inputs.q_len() + i);
        if (std::isinf(lse[lse_at])) continue; // no visible key: exactly 0 and -inf
        double squares = 0;
        for (size_t e = 0; e < size_t(d); ++e)
          squares += double(q[row * size_t(d) + e]) * q[row * size_t(d) + e];
        // Cauchy and Schwarz bound every score, and the sum of the magnitudes behind it, by this.
        const double A = scale * std::sqrt(squares) * k_norms[size_t(b * inputs.kv_heads() + h / group)];
        const double score = u * (A * (8 + 3 * d / 8) + 10 * A);
        const double weight = score + u * (2 + tiles * (3 + 4 * A));
        const double sum = weight + u * n;
        out.lse_tolerance[lse_at] = sum + u * (4 * A + 4 * (1 + std::log(n)) + 2 * std::fabs(lse[lse_at]));
        for (size_t e = 0; e < size_t(inputs.head_dim_v()); ++e) {
          const size_t at = row * size_t(inputs.head_dim_v()) + e;
          const double size = std::fabs(out.o[at]);
          const double before_store = magnitude[at] * (p_rounding + weight + u * (8 + 3 * n / 8)) +
                                      p_absolute * n * v_largest + size * (sum + 4 * u);
          out.o_tolerance[at] = before_store + o_rounding * (size + before_store) + o_absolute;
        }
      }
  return out;
}

ErrorFigures measure(std::span<const double> got, std::span<const double> expected,
                     std::span<const double> tolerance) {
  ErrorFigures figures{.count = got.size()};
  double squares = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    if (got[i] == expected[i]) continue;
    double error = std::fabs(got[i] - expected[i]);
    if (std::isnan(error)) error = std::numeric_limits<double>::infinity();
    const double ratio = tolerance[i] > 0 ? error / tolerance[i] : std::numeric_limits<double>::infinity();
    figures.max_absolute = std::max(figures.max_absolute, error);
    if (expected[i] != 0)
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
  return text + (figures.passed() ? "  ok" : fmt::format("  WRONG: {} beyond tolerance", figures.beyond));
}

} // namespace sluice::tools
