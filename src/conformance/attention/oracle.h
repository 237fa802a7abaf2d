//===- oracle.h - attention in double precision, and a kernel's tolerance -------------------------------===//
//
// Shares no code with the library: not its reference, not its number formats, not its masks. With each result
// it computes the bound on the kernel's rounding errors for that row (bound.h).
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "conformance/attention/inputs.h"
#include "conformance/attention/sequences.h"

namespace sluice::conformance {

/// Every sequence has q_len rows; those past its length are 0. If an element is NaN or infinite, the
/// result must be one of the two.
struct Expected {
  std::vector<double> o;             // [batch, q_len, q_heads, head_size.v]
  std::vector<double> o_tolerance;   // same; 0 for a row without weights, which is exact
  std::vector<bool> o_of_weightless; // as o: V of a visible key with a score of -infinity is not finite
                                     // there, which sluice_attention_reference shows and a kernel may
  std::vector<double> lse;           // [batch, q_heads, q_len]
  std::vector<double> lse_tolerance; // same
};

/// Whether row i of query head h sees key j, which is less than the sequence's length: by its place only, and
/// also by the mask's bits and a bias of -infinity.
bool is_in_place(const Case &c, const Sequences &sequences, int b, int i, int j);
bool is_visible(const Case &c, const Sequences &sequences, const Inputs &inputs, int b, int h, int i, int j);

Expected compute_expected(const Case &c, const Inputs &inputs);

} // namespace sluice::conformance
