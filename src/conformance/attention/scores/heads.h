//===- heads.h - numbers for query heads, of all sequences or of each -----------------------------------===//
#pragma once

#include "conformance/attention/cases.h"
#include "conformance/shared/elements.h"

#include <vector>

namespace sluice::conformance {

/// [batch][query head]: draw(n), or the first sequence's unless each sequence has its own.
template <typename Draw> std::vector<double> make_heads(const Case &c, Draw draw) {
  const auto heads = size_t(c.q_heads);
  std::vector<double> numbers;
  for (size_t n = 0; n < size_t(c.batch) * heads; ++n)
    numbers.push_back(n >= heads && !c.by_sequence ? numbers[n % heads] : draw(n));
  return numbers;
}

/// Adds a buffer with what of them a call gets, and returns its number.
inline int add_heads(const Case &c, std::vector<double> numbers,
                     std::vector<std::vector<std::byte>> &buffers) {
  if (!c.by_sequence) numbers.resize(size_t(c.q_heads));
  return add_array<float>(buffers, numbers);
}

/// From one sequence's numbers to the next one's; 0: shared.
inline int64_t head_stride(const Case &c) {
  return c.by_sequence ? c.q_heads : 0;
}

} // namespace sluice::conformance
