//===- tensors.h - where the rows of a sequence are, and what their elements are ------------------------===//
//
// The addressing rules of calls::Args: lengths, starts, page tables, packed keys, element types.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "calls/args.h"
#include "calls/cache_ops.h"
#include "calls/problem.h"
#include "tensors/elements.h"

#include <sluice/sluice.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace sluice::reference {

using tensors::index_of;
using tensors::load;
using tensors::store;

/// The index of element `dim` of a row of K, in packs of `pack` elements or, with 0, contiguous.
int64_t packed_index(const sluice_tensor &tensor, int64_t pack, int64_t a, int64_t b, int64_t head,
                     int64_t dim);

/// The index of element `dim` of the row of V at `token`: in packs of `pack` tokens, or with 0 and
/// SLUICE_PACK_ALL as the strides say.
int64_t column_index(const sluice_tensor &tensor, int64_t pack, int64_t a, int64_t token, int64_t head,
                     int64_t dim);

/// The page table of a calls::Args or a calls::Append.
struct PageTable {
  const void *numbers;
  bool is_64, is_csr;
  int64_t stride;        // BLOCK
  const int32_t *starts; // CSR
  int64_t head_stride = 0;

  /// The position in `numbers` of entry n of a sequence for a KV head, and the number there.
  int64_t place(int64_t sequence, int64_t n, int64_t head = 0) const {
    return (is_csr ? starts[sequence] : sequence * stride) + head * head_stride + n;
  }
  int64_t page(int64_t at) const {
    return is_64 ? static_cast<const int64_t *>(numbers)[at] : static_cast<const int32_t *>(numbers)[at];
  }
};

/// The first two indices of a row in its tensor: batch and token, 0 and token, or page and row of the page.
struct Row {
  int64_t outer;
  int64_t inner;
};

/// One sequence of a call, whose q_len and kv_len are given.
class Sequence {
public:
  Sequence(const calls::Problem &problem, const calls::Args &args, int64_t number);

  int64_t number() const { return b; }
  int64_t q_len() const { return q_rows; }
  int64_t kv_len() const { return keys; }

  /// The number of the sequence's page n for a KV head, and its position in page_table.
  int64_t page(int64_t n, int64_t head) const;
  int64_t page_entry(int64_t n, int64_t head) const;
  /// Whether key j is hidden because it has no page. Always false for calls that hide no keys.
  bool is_missing(int64_t j, int64_t head) const;
  /// Whether page n is before the window of all rows and has no sink tokens: its entry may be anything.
  bool is_page_before_window(int64_t n) const;
  /// The key on the diagonal of row 0.
  int64_t shift() const;

  /// Row i of q, o and lse.
  Row q_row(int64_t i) const;
  /// Its number among all rows of q, by which rows see prefixes.
  int64_t q_number(int64_t i) const;
  /// Key j of a head of k and v.
  Row kv_row(int64_t j, int64_t head) const;

  /// Head h of all rows of Q, and of all keys in K and V: one row after another. NaN for keys of a page
  /// before the window, and for those without a page.
  std::vector<double> load_q(int64_t head) const;
  std::vector<double> load_k(int64_t head) const;
  std::vector<double> load_v(int64_t head) const;
  /// The scale of key j of a head by its kind.
  double k_scale(int64_t j, int64_t head) const;
  double v_scale(int64_t j, int64_t head) const;

private:
  /// A number as the element that it is with the scale of its group, if it has one.
  double in_group(uint32_t kind, const sluice_tensor &scales, const sluice_tensor &zeros, int64_t j,
                  int64_t head, int64_t dim, double number) const;
  double key_scale(uint32_t kind, const float *few, const sluice_tensor &scales, int64_t j,
                   int64_t head) const;
  PageTable table() const;
  template <typename Element>
  std::vector<double> load_keys(int64_t head, int64_t dims, const Element &element) const;
  int64_t k_index(int64_t j, int64_t head, int64_t dim) const;

  const calls::Problem &problem;
  const calls::Args &args;
  int64_t b;
  int64_t q_rows;
  int64_t keys;
};

/// The prefixes of a call, none without calls::prefixes, as the sequences of another call: their keys
/// and the rows that see them.
calls::Args prefixes_as_sequences(const calls::Args &args);

/// The prefix that a row of q sees, if any.
std::optional<int64_t> prefix_of(const calls::Problem &problem, const calls::Args &args, int64_t q_number);

} // namespace sluice::reference
