//===- pages.h - which pages hold the keys of a case ----------------------------------------------------===//
//
// The pages of all sequences in one shuffled order, with further pages among them that no sequence owns.
// After the entries that a sequence needs, its part of the table holds numbers far out of range: an access
// through one of them faults. Entries of pages before the window are such numbers too, alternating with -1.
// The last sequence's part ends with the array, so that reading past it is an error.
//
// If KV heads have entries of their own, they have pages of their own, too, in which only their rows are
// keys. Those of a sequence follow one another, or for CSR all sequences' of a head.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "conformance/attention/sequences.h"

namespace sluice::conformance {

/// The entries of sequences, or of prefixes.
struct TableEntries {
  std::vector<int64_t> entries;
  int64_t stride = 0;      // SLUICE_PAGE_TABLE_BLOCK
  std::vector<int> starts; // SLUICE_PAGE_TABLE_CSR, else empty
  int64_t head_stride = 0; // 0: heads share entries

  size_t place(int b, int kv_head, int n) const {
    return size_t((starts.empty() ? b * stride : starts[size_t(b)]) + kv_head * head_stride + n);
  }
  int64_t page(int b, int kv_head, int n) const { return entries[place(b, kv_head, n)]; }
};

struct PageTable {
  PageTable(const Case &c, const Sequences &sequences);

  TableEntries own, prefixes;
  int64_t pages_in_all = 0; // of the cache

  /// Whether the entry of a sequence names a page of the cache.
  bool has_page(int b, int kv_head, int n) const {
    return own.page(b, kv_head, n) >= 0 && own.page(b, kv_head, n) < pages_in_all;
  }
};

} // namespace sluice::conformance
