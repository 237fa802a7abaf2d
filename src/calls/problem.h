//===- problem.h - a class of attention calls in one struct ---------------------------------------------===//
//
// A sluice_attention with all that it points to. Checks, the choice of kernels, kernel arguments and the
// reference read this form; src/abi makes it of the caller's structs. Zero is "none" or "unbounded".
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <sluice/attention.h>

#include <cstdint>
#include <string_view>

namespace sluice::calls {

/// Where sequences are. Whether K and V are in pages, and rows packed, in one number.
enum Mode : uint32_t { dense = 0, ragged = 1, paged = 2 };

/// Bits of Problem::flags: those of all the caller's structs. PageCopy, Gather and Append have the three of
/// caches.
enum Flag : uint32_t {
  causal = 1 << 0,
  write_lse = 1 << 1,
  window_left = 1 << 2,
  window_right = 1 << 3,
  alibi = 1 << 4,
  sinks = 1 << 5,
  mask_bits = 1 << 6,
  page_index_64 = 1 << 7,
  v_in_k = 1 << 8,
  mask_bits_of_new = 1 << 9,
  prefixes = 1 << 10,
  spans = 1 << 11,
  causal_by_sequence = 1 << 12,
  zero_points = 1 << 13,
  bias_scale = 1 << 14,
  missing_pages = 1 << 15,
  padded_rows = 1 << 16,
  lse_log2 = 1 << 17,
  batch_invariant = 1 << 18
};

/// The name that callers have for a flag.
constexpr std::string_view flag_name(Flag flag) {
  switch (flag) {
  case causal:
    return "SLUICE_MASK_CAUSAL";
  case write_lse:
    return "an LSE";
  case window_left:
    return "SLUICE_MASK_WINDOW_LEFT";
  case window_right:
    return "SLUICE_MASK_WINDOW_RIGHT";
  case alibi:
    return "SLUICE_SCORES_ALIBI";
  case sinks:
    return "SLUICE_SCORES_SINK";
  case mask_bits:
    return "SLUICE_MASK_BITS";
  case page_index_64:
    return "SLUICE_KV_PAGE_INDEX_64";
  case v_in_k:
    return "SLUICE_KV_V_IN_K";
  case mask_bits_of_new:
    return "SLUICE_MASK_BITS_OF_NEW";
  case prefixes:
    return "SLUICE_ATTENTION_PREFIXES";
  case spans:
    return "SLUICE_MASK_SPANS";
  case causal_by_sequence:
    return "SLUICE_MASK_CAUSAL_BY_SEQUENCE";
  case zero_points:
    return "zero points";
  case bias_scale:
    return "SLUICE_SCORES_BIAS_SCALE";
  case missing_pages:
    return "SLUICE_MASK_MISSING_PAGES";
  case padded_rows:
    return "SLUICE_ATTENTION_PADDED_ROWS";
  case lse_log2:
    return "SLUICE_LSE_LOG2";
  case batch_invariant:
    return "SLUICE_ATTENTION_BATCH_INVARIANT";
  }
  return "";
}

struct Problem {
  uint32_t flags = 0;
  uint32_t mode = 0;
  uint32_t q_type = 0, k_type = 0, v_type = 0, o_type = 0; // with v_in_k, v_type is k_type
  int32_t q_heads = 0, kv_heads = 0;
  int32_t head_dim_qk = 0, head_dim_v = 0;

  // Bounds.
  int32_t max_batch = 0, max_q_len = 0, max_kv_len = 0;
  int64_t max_q_tokens = 0;
  int32_t max_prefixes = 0, max_prefix_len = 0;
  uint64_t workspace_ceiling_bytes = 0;

  // Masks and scores.
  uint32_t mask_alignment = 0;
  int32_t window_left = 0, window_right = 0, sink_tokens = 0;
  float soft_cap = 0;
  uint32_t bias_type = 0;

  // Formats.
  uint32_t q_scale_kind = 0, k_scale_kind = 0, v_scale_kind = 0, o_scale_kind = 0;
  int32_t scale_group = 0;
  int32_t page_size = 0;
  uint32_t page_table_kind = 0;
  int32_t k_pack = 0, v_pack = 0;
};

} // namespace sluice::calls
