//===- memory.h - a case's tensors in memory, poisoned and guarded --------------------------------------===//
//
// The images hold the case's tensors in its layout. Every input element outside of the tensors is NaN or
// infinity, so that a read of it shows; every output element starts as a canary, so that a stray write shows
// too. Unused mask bits say "visible".
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "conformance/attention/blocks.h"
#include "conformance/attention/inputs.h"
#include "conformance/attention/scores/by_change.h"
#include "conformance/shared/elements.h"
#include "conformance/shared/placement.h"

#include <cstddef>
#include <string>
#include <vector>

namespace sluice::conformance {

/// What a change of scores has in memory.
struct ScoreBuffers {
  Placement matrix = {}; // [batch][head][row][column]
  int heads = -1;        // the number of its buffer; -1: absent
};

struct Memory {
  Placement q, k, v, o, lse;
  Placement k_scales, v_scales, k_zeros, v_zeros;
  Placement prefix_k, prefix_v; // except in pages
  int64_t page_table_stride = 0, page_table_head_stride = 0;
  /// Buffer numbers; -1: absent.
  int q_starts = -1, kv_starts = -1, q_lengths = -1, kv_lengths = -1;
  int page_table = -1, page_starts = -1;
  int q_scale = -1, k_scale = -1, v_scale = -1, o_scale = -1;
  int diagonals = -1, causal = -1, spans = -1;
  int64_t prefix_page_table_stride = 0;
  int prefix_q_starts = -1; // of the call, then, if they differ, of a call for each sequence
  int prefix_lengths = -1, prefix_page_table = -1, prefix_page_starts = -1;
  ByChange<ScoreBuffers> changes;
  std::vector<std::vector<std::byte>> buffers;
};

/// Adds an input buffer without tensors, and returns its number.
int add_poison(std::vector<std::vector<std::byte>> &buffers, int64_t count, Element element);

/// The size of some elements of K and V.
inline size_t cache_bytes(const Case &c, int64_t elements = 1) {
  return is_in_blocks(c) ? block_bytes(c, elements) : size_t(elements) * (has_byte_cache(c) ? 1 : 2);
}
inline size_t query_bytes(const Case &c) {
  return has_fp8_queries(c) ? 1 : 2;
}
inline size_t output_bytes(const Case &c) {
  return c.o_f32 ? 4 : c.o_fp8 ? 1 : 2;
}
Memory make_memory(const Case &c, const Inputs &inputs);

struct Outputs {
  std::vector<double> o;   // [batch, q_len, q_heads, head_size.v]; 0 past the lengths
  std::vector<double> lse; // [batch, q_heads, q_len]; 0 past the lengths; empty if not asked for
};

Outputs read_outputs(const Case &c, const Memory &memory);

/// Empty if `after` differs from `before` only in bytes of O and LSE; else where and how.
std::string find_stray_write(const Case &c, const Memory &before, const Memory &after);

} // namespace sluice::conformance
