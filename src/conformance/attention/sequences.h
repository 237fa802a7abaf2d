//===- sequences.h - the lengths of a case's sequences, and where their rows begin ----------------------===//
#pragma once

#include "conformance/attention/cases.h"

#include <array>

namespace sluice::conformance {

/// Some of them may be empty.
inline constexpr int spans_per_sequence = 3;

struct Span {
  int first, end;
};

/// Whether the entry of page n of a sequence is negative for a KV head: single pages, tiles of keys, and all
/// of the last of several sequences.
bool is_missing(const Case &c, int b, int kv_head, int n);

struct Sequences {
  explicit Sequences(const Case &c);

  std::vector<int> q_lengths, kv_lengths;
  std::vector<int> q_starts, kv_starts; // empty if the call lacks them
  std::vector<int> shifts;              // the key on the diagonal of row 0
  std::vector<int> causal;              // whether causal_by_sequence has chosen the sequence
  std::vector<Span> spans;              // [sequence][spans_per_sequence], or empty
  int q_rows = 0, kv_rows = 0;          // rows of the tensors: of all sequences with starts, else of each
  /// Rows are counted through all sequences, with those between them.
  std::vector<int> prefix_starts, prefix_lengths; // empty without prefixes

  /// How many keys key j is after row i's own place.
  int distance(int b, int i, int j) const { return j - i - shifts[size_t(b)]; }

  /// The span that has the key, or an empty one there.
  Span span_of(int b, int key) const;

  /// The first two indices of a row in memory, except in pages.
  std::array<int64_t, 2> q_row(int b, int i) const { return row(q_starts, b, i); }
  std::array<int64_t, 2> kv_row(int b, int j) const { return row(kv_starts, b, j); }
  /// The prefix that row i of sequence b sees, or -1.
  int prefix_of(const Case &c, int b, int i) const;

private:
  void add_prefixes(const Case &c);
  static std::array<int64_t, 2> row(const std::vector<int> &starts, int b, int i) {
    if (starts.empty()) return {b, i};
    return {0, starts[size_t(b)] + i};
  }
};

} // namespace sluice::conformance
