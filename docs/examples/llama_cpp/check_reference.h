//===- check_reference.h - attention in double precision, and how far a kernel may be from it ----------===//
#pragma once

#include "check_case.h"

namespace check {

struct Expected {
  std::vector<double> o;     ///< [sequence, row, head, element]
  std::vector<double> bound; ///< of the error of each, from docs/concepts/numerics.md
};

/// Attention as ggml.h describes it, of Q rounded to the type of K or, without it, of Q as it is. The bound
/// is that of a kernel which gets the rounded Q.
Expected attention(const Case &of, const Numbers &numbers, bool rounds_q);

} // namespace check
