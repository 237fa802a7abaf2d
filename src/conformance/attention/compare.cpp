//===- compare.cpp - results against expectations -------------------------------------------------------===//

#include "conformance/attention/compare.h"

#include "conformance/attention/case_elements.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

namespace sluice::conformance {

namespace {

// 0 if equal, infinity if exactly one is NaN or infinite, or if no error is allowed.
double error_ratio(double got, double expected, double tolerance) {
  if (got == expected) return 0;
  const double error = std::fabs(got - expected);
  if (!std::isfinite(error) || tolerance == 0) return std::numeric_limits<double>::infinity();
  return error / tolerance;
}

// NaN and infinity have no distance: they match or they do not.
double o_error_ratio(const Case &c, double got, double expected, double tolerance, bool may_show) {
  // FP8 has no infinity: the largest number is in its place.
  if (c.o_fp8 && !std::isnan(expected) && std::isinf(expected)) expected = std::copysign(240, expected);
  if (!std::isfinite(expected)) return std::isfinite(got) ? std::numeric_limits<double>::infinity() : 0;
  if (may_show && !std::isfinite(got)) return 0;
  return error_ratio(got, expected, tolerance);
}
double lse_error_ratio(double got, double expected, double tolerance) {
  if (std::isnan(expected)) return std::isnan(got) ? 0 : std::numeric_limits<double>::infinity();
  return error_ratio(got, expected, tolerance);
}

double reference_tolerance(const Case &c, double o) {
  // Half a unit in the last place, and some slack for two different orders of summation in double.
  constexpr double orders = 1e-12;
  if (c.o_f32) return std::fabs(o) * 0x1p-24 + 0x1p-150 + orders;
  if (c.o_fp8) return std::fabs(o) * 0x1p-4 + 0x1p-11 + orders;
  const bool f16 = c.dtype == Dtype::f16;
  return std::fabs(o) * (f16 ? 0x1p-11 : 0x1p-8) + (f16 ? 0x1p-25 : 0x1p-134) + orders;
}

/// Whether all F32 elements of O are numbers of the 16-bit type although most sums are not: the tolerance,
/// which allows for errors of P, would not detect this rounding.
bool is_rounded(const Case &c, const Expected &expected, const Outputs &outputs) {
  constexpr size_t enough = 64;
  const Element narrow = element_type(c.dtype);
  size_t wide = 0;
  for (size_t i = 0; i < outputs.o.size(); ++i) {
    const double want = expected.o[i], got = outputs.o[i];
    if (!std::isfinite(want) || !std::isfinite(got)) continue;
    if (as_stored(narrow, got) != got) return false;
    wide += std::fabs(as_stored(narrow, want) - want) > std::fabs(want) * 0x1p-16;
  }
  return wide >= enough;
}

} // namespace

Comparison compare(const Case &c, const Expected &expected, const Outputs &outputs, Judge judge) {
  Comparison result;
  auto note = [&](const char *what, int b, int row, int h, int column, double got, double want,
                  double tolerance) {
    char line[256] = "";
    if (result.wrong < Comparison::shown_at_most)
      std::snprintf(line, sizeof line, "%s batch %d row %d head %d column %d: %.9g, expected %.9g +- %.3g",
                    what, b, row, h, column, got, want, tolerance);
    result.note(line);
  };
  size_t i = 0;
  for (int b = 0; b < c.batch; ++b)
    for (int row = 0; row < c.q_len; ++row)
      for (int h = 0; h < c.q_heads; ++h)
        for (int column = 0; column < c.head_size.v; ++column, ++i) {
          const bool is_nan = judge == Judge::reference && expected.o_of_weightless[i];
          const double want = is_nan ? std::numeric_limits<double>::quiet_NaN() : expected.o[i];
          const double tolerance = expected.o_tolerance[i] == 0 ? 0
                                   : judge == Judge::kernel     ? expected.o_tolerance[i]
                                                                : reference_tolerance(c, want);
          const double ratio = o_error_ratio(c, outputs.o[i], want, tolerance, expected.o_of_weightless[i]);
          result.o_ratio = std::max(result.o_ratio, ratio);
          if (ratio > 1) note("O", b, row, h, column, outputs.o[i], want, tolerance);
        }
  if (c.o_f32 && judge == Judge::kernel && is_rounded(c, expected, outputs))
    result.note("O is F32, but every element is a number of the 16-bit type");
  i = 0;
  for (int b = 0; c.lse && b < c.batch; ++b)
    for (int h = 0; h < c.q_heads; ++h)
      for (int row = 0; row < c.q_len; ++row, ++i) {
        const double want = expected.lse[i];
        const double tolerance =
            judge == Judge::kernel ? expected.lse_tolerance[i] : std::fabs(want) * 0x1p-24 + 1e-12;
        const double ratio = lse_error_ratio(outputs.lse[i], want, tolerance);
        result.lse_ratio = std::max(result.lse_ratio, ratio);
        if (ratio > 1) note("LSE", b, row, h, 0, outputs.lse[i], want, tolerance);
      }
  return result;
}

} // namespace sluice::conformance
