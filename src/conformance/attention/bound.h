//===- bound.h - how far a kernel's rounding may take it from the exact result --------------------------===//
//
// A bound per row, from the row's own numbers, so that a tolerance is a consequence of types, head size,
// length and those numbers, never a guess. docs/concepts/numerics.md derives it term by term.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "conformance/attention/cases.h"
#include "conformance/attention/scores/by_change.h"

namespace sluice::conformance {

/// The largest magnitudes among the keys of a row that have a weight, and the number of these keys.
struct RowMagnitudes {
  double products = 0;   // A: sum |q k|, with all scales
  double raw = 0;        // R: of the scores before they are changed
  double score = 0;      // X: of the scores, changed or not, and of the sink logit
  double terms = 0;      // Z: of |score| + |term| + ..., where changes add terms
  double v_exponent = 0; // E: of the logarithms of V's scales per key

  int keys = 0;   // n
  int tiles = 0;  // t: tiles of 16 keys that contain one of them
  int groups = 0; // g: groups of 8 keys in which the matrix cores may have added them

  ByChange<double> added; // B, L: of the terms of each change
  int extra_keys = 0;     // without a value

  /// Sets the three numbers; the keys must ascend.
  void count_keys(const std::vector<int> &visible);
};

class RowBound {
public:
  /// l is the denominator relative to the largest score, lse is to base e.
  RowBound(const Case &c, const RowMagnitudes &row, double l, double lse);

  double lse() const { return lse_error; }
  /// The bound of an element o, with W = sum P |v| / l and V = sum |v| / l.
  double o(double o, double W, double V) const;

private:
  struct Roundings {
    double p = 0;             // relative error of a weight P when it becomes the matrix cores' operand
    double p_absolute;        // and its absolute error where it is subnormal
    double o;                 // relative error of an output when it is stored
    double o_absolute;        // half the spacing of the output's subnormals
    double element_error = 0; // relative error of an element of V
  };

  static Roundings roundings_of(const Case &c);

  Roundings rounding;
  double weight_error;  // relative: the row's numerators, without the operand's rounding
  double result_error;  // relative: the denominator, the division and the scale of V
  double lse_error = 0; // absolute
};

/// The bound of an LSE to base 2, from the LSE to base e and its bound.
double tolerance_in_base_2(double lse, double tolerance);

} // namespace sluice::conformance
