//===- append_groups.h - the blocks and groups that an append must store --------------------------------===//
//
// Where no norm or rotation precedes, numbers and scales are exact: ggml's own steps in F32 for its blocks,
// and those of the header for U4.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "conformance/shared/elements.h"

#include <span>
#include <vector>

namespace sluice::conformance {

/// What F32 arithmetic computes is within `margin` of `value`.
struct Computed {
  double value, margin;
};

struct StoredGroup {
  Computed scale, zero;          // F16; zero: U4 with zero points
  std::vector<Computed> numbers; // before they are rounded to an integer of the type; exact ones are integers
};

inline bool is_in_groups(Element cache) {
  return cache == Element::u4 || cache == Element::q8_0 || cache == Element::q4_0;
}

/// `cache`: Q8_0 and Q4_0, whose groups have 32 elements, or U4.
StoredGroup stored_group(Element cache, bool has_zero, std::span<const Computed> values);

/// Bytes of a number of elements of a cache, which are whole blocks.
size_t cache_bytes(Element cache, int64_t elements);

/// Where a cache has element `at`, or the scale of its block: as an index of i8, u4 or f16 in the buffer.
int64_t number_index(Element cache, int64_t at);
int64_t scale_index(Element cache, int64_t at);

} // namespace sluice::conformance
