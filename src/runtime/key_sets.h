//===- key_sets.h - the sets of keys of a call, and the rows that see them ------------------------------===//
//
// The rows of a call see the keys of their own sequences. In a cascade they see the keys of a prefix before
// these, and the call has two levels, each with launches of its own. To a kernel, both levels are sequences
// that have rows and keys; this is the one place that knows where each level's are.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "calls/args.h"
#include "calls/problem.h"
#include "runtime/call_rows.h"

#include <sluice/sluice.h>

#include <cstdint>

namespace sluice::runtime {

/// Rows of q by sequences. Pointers are to arrays on the device and may be null.
struct RowSet {
  sluice_tensor q;
  Rows extents;           // of q
  int32_t count;          // sequences
  int32_t most_rows;      // of a sequence
  int64_t tokens;         // rows of q, with starts; 0: unknown
  const int32_t *starts;  // [count + 1]
  const int32_t *lengths; // [count]
};

/// Keys by the same sequences.
struct KeySet {
  const sluice_tensor &k, &v;
  Rows extents;           // of k and v, and of the scales of their keys
  int32_t most_keys;      // of a sequence
  int64_t tokens;         // rows of k and v, with starts; 0: unknown
  const int32_t *starts;  // [count + 1]
  const int32_t *lengths; // [count]
  const void *page_table;
  const int32_t *page_starts; // [count + 1]
  int64_t page_table_stride, page_table_head_stride;
};

struct Level {
  RowSet rows;
  KeySet keys;
};

inline Level own_level(const calls::Problem &problem, const calls::Args &call) {
  return {.rows = {.q = call.q,
                   .extents = q_rows(call),
                   .count = call.batch,
                   .most_rows = call.q_len,
                   .tokens = call.q_tokens,
                   .starts = call.q_starts,
                   .lengths = call.q_lengths},
          .keys = {.k = call.k,
                   .v = call.v,
                   .extents = kv_rows(problem, call),
                   .most_keys = call.kv_len,
                   .tokens = call.kv_tokens,
                   .starts = call.kv_starts,
                   .lengths = call.kv_lengths,
                   .page_table = call.page_table,
                   .page_starts = call.page_starts,
                   .page_table_stride = call.page_table_stride,
                   .page_table_head_stride = call.page_table_head_stride}};
}

/// Each prefix is a sequence of the rows that see it, which are found by their numbers among all `rows` rows
/// of q.
inline Level prefix_level(const calls::Problem &problem, const calls::Args &call, int32_t rows) {
  const bool is_paged = problem.mode == calls::paged;
  sluice_tensor q = call.q;
  // Rows of sequences of one row follow one another by stride[0].
  if (call.q_starts == nullptr && call.q_len == 1) q.stride[1] = q.stride[0];
  return {.rows = {.q = q,
                   .extents = started_rows(rows),
                   .count = call.prefix_count,
                   .most_rows = rows,
                   .tokens = rows,
                   .starts = call.prefix_q_starts,
                   .lengths = nullptr},
          .keys = {.k = is_paged ? call.k : call.prefix_k,
                   .v = is_paged ? call.v : call.prefix_v,
                   .extents = prefix_kv_rows(problem, call),
                   .most_keys = call.prefix_len,
                   .tokens = 0,
                   .starts = nullptr,
                   .lengths = call.prefix_lengths,
                   .page_table = call.prefix_page_table,
                   .page_starts = call.prefix_page_starts,
                   .page_table_stride = call.prefix_page_table_stride,
                   .page_table_head_stride = 0}}; // heads share the tables of prefixes
}

} // namespace sluice::runtime
