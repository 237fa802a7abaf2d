//===- blocks.h - caches in blocks of elements with a common scale --------------------------------------===//
//
// The layouts of the header, written down once more. A case's values of K and V are exact: scale * (number -
// subtracted), with numbers of 4 or 8 bits and a scale per group that follows from the case's name.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "conformance/attention/cases.h"

#include <cstddef>
#include <vector>

namespace sluice::conformance {

inline bool is_in_blocks(const Case &c) {
  return c.cache >= Cache::q8_0;
}
/// Scales, and numbers to subtract, are in arrays of their own.
inline bool has_group_arrays(const Case &c) {
  return c.cache == Cache::u4 || c.cache == Cache::u4_zeros;
}

/// The elements that share a scale.
inline int group_elements(const Case &c) {
  return c.cache == Cache::u4_zeros ? 64 : 32;
}

/// The bytes of `elements`, a multiple of 32, from the beginning of a block.
inline size_t block_bytes(const Case &c, int64_t elements) {
  const size_t blocks = size_t(elements) / 32;
  return c.cache == Cache::q8_0 ? blocks * 34 : c.cache == Cache::q4_0 ? blocks * 18 : size_t(elements) / 2;
}

/// The scale of a group, an F16 number, and the zero that is subtracted from its numbers before.
struct Group {
  double scale, subtracted;
};

/// Of K or V, a key of a head; `key` counts all sequences'.
class Groups {
public:
  Groups(const Case &c, bool is_v) : c(c), is_v(is_v) {}
  Group of(int64_t key, int head, int group) const;
  /// The smallest and the largest number.
  int least() const { return c.cache == Cache::q8_0 ? -127 : 0; }
  int most() const { return c.cache == Cache::q8_0 ? 127 : 15; }
  /// The nearest value to `value` that the group has.
  double nearest(const Group &group, double value) const;
  /// The number of a value that the group has.
  int number_of(const Group &group, double value) const;

private:
  const Case &c;
  bool is_v;
};

/// Stores element `index` of a buffer of blocks, which begins with a block, and the scale of its block if
/// that is in it.
void store_in_block(const Case &c, std::vector<std::byte> &buffer, int64_t index, int number, double scale);

} // namespace sluice::conformance
