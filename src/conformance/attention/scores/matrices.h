//===- matrices.h - numbers for each row and key --------------------------------------------------------===//
#pragma once

#include "conformance/attention/inputs.h"
#include "conformance/attention/sequences.h"

#include <string>

namespace sluice::conformance {

/// The dimensions that repeat, as a part of a case's name.
std::string shared_text(uint8_t shared);

/// Zeros.
Matrix make_matrix(const Case &c, uint8_t shared, int keys);

/// Visits only what some row and key of a sequence needs; all else is poison.
template <typename Visit> void for_each_used(const Case &c, const Sequences &sequences, Visit visit) {
  for (int b = 0; b < c.batch; ++b)
    for (int h = 0; h < c.q_heads; ++h)
      for (int i = 0; i < sequences.q_lengths[size_t(b)]; ++i)
        for (int j = 0; j < sequences.kv_lengths[size_t(b)]; ++j)
          visit(b, h, i, j);
}

} // namespace sluice::conformance
