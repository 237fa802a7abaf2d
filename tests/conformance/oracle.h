//===- oracle.h - attention in double precision, and how far a kernel may be from it --------------------===//
//
// Shares no code with the library: not its reference, not its number formats, not its masks. Beside each
// result it computes the bound on the kernel's rounding errors for that very row, so that a tolerance is a
// consequence of dtype, head size, length and the row's numbers, never a guess. The derivation is in
// docs/concepts/numerics.md.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "cases.h"

#include <vector>

namespace sluice::test {

/// The logical tensors of a case: exact values, densely [batch, token, head, d].
struct Inputs {
  std::vector<double> q, k, v;
};

Inputs make_inputs(const Case &c);

struct Expected {
  std::vector<double> o;             // [batch, q_len, q_heads, d]
  std::vector<double> o_tolerance;   // same
  std::vector<double> lse;           // [batch, q_heads, q_len]; -inf for a row with no visible key
  std::vector<double> lse_tolerance; // same
};

/// The number of leading keys that query row i sees.
int visible_keys(const Case &c, int row);

Expected compute_expected(const Case &c, const Inputs &inputs);

} // namespace sluice::test
