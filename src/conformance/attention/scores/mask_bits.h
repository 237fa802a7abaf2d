//===- mask_bits.h - the keys of a mask's bits ----------------------------------------------------------===//
#pragma once

#include "conformance/attention/sequences.h"

namespace sluice::conformance {

/// The key of the first column of the mask's bits.
inline int first_masked_key(const Case &c, const Sequences &sequences, int b) {
  return c.bits.new_rows ? sequences.kv_lengths[size_t(b)] - sequences.q_lengths[size_t(b)] : 0;
}

} // namespace sluice::conformance
