//===- tensors.h - how tensors and their scales are laid out --------------------------------------------===//
#pragma once

#include <compare>
#include <cstdint>

namespace sluice::conformance {

struct HeadSizes {
  constexpr HeadSizes(int both) : qk(both), v(both) {}
  constexpr HeadSizes(int qk_size, int v_size) : qk(qk_size), v(v_size) {}
  int qk, v;
  auto operator<=>(const HeadSizes &) const = default;
};

/// The layout of the tensors in memory. Of K and V in pages: of each page.
enum class Layout : uint8_t {
  bshd,      // [batch, token, head, d], nothing between
  bhsd,      // [batch, head, token, d]
  sbhd,      // [token, batch, head, d]
  packed,    // Q, K and V in one [batch, token, q heads + 2 kv heads, d] buffer; pages: K and V
  padded,    // bshd, but tokens, heads and batches apart, with NaN between them
  capacity,  // bshd inside a longer buffer whose further tokens are NaN
  broadcast, // bshd; all batches read the same K and V (batch stride 0, or the same pages)
};

/// V by columns: the tokens of a column are neighbours, in packs of 16 bytes or all of a page or sequence.
enum class Columns : uint8_t { none, packs, whole };

enum class Scale : uint8_t { none, tensor, head, token, page }; // the last two only of K and V

/// A scale for each key.
inline bool is_per_key(Scale scale) {
  return scale == Scale::token || scale == Scale::page;
}

} // namespace sluice::conformance
