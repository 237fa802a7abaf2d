//===- group_query_step.h - one call of GroupQueryAttention, checked ------------------------------------===//
//
// When a call is done, sequence b has T = seqlens_k[b] + 1 keys. The first Q of its rows are new tokens, the
// others padding: Q is query_seqlens[b], or else min(rows, T). The P = T - Q keys before are in the past
// cache.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "api.h"
#include "rotary.h"

namespace sluice_ort {

namespace group_query {

enum Input {
  query,
  key,
  value,
  past_key,
  past_value,
  seqlens_k,
  total_sequence_length,
  cos_cache,
  sin_cache,
  position_ids,
  attention_bias,
  head_sink,
  k_scale,
  v_scale,
  q_norm_weight,
  k_norm_weight,
  query_seqlens
};
enum Output { output, present_key, present_value, output_qk };

/// The attributes that say what the tensors of a call look like.
struct Layout {
  int64_t heads, kv_heads;
  bool has_rotary, interleaved;
  uint32_t type; // sluice_dtype of Q, K and V
};

/// New rows of K or V: of a token, kv_heads * head_size elements; tokens are token_stride elements apart.
struct NewRows {
  const uint16_t *data;
  int64_t token_stride;
};

struct Step {
  int64_t batch = 0, rows = 0, head_size = 0;
  int64_t past_capacity = 0, capacity = 0;     // rows of a head in the past caches and in the present ones
  int64_t q_token_stride = 0;                  // of query, which may have K and V in its rows
  std::vector<int32_t> new_rows, keys;         // Q and T of each sequence
  std::vector<std::vector<int64_t>> positions; // of each sequence's new rows, with rotary
  const uint16_t *q = nullptr;
  NewRows k{}, v{};
  const uint16_t *past_k = nullptr, *past_v = nullptr; // null if the cache is empty
  Rotary rotary;

  int64_t past_rows(int64_t b) const { return keys[b] - new_rows[b]; }
  bool is_padded() const;
  int32_t longest() const; // of keys
};

/// Reads the inputs of a call. Throws Refusal where one breaks a rule, before anything is stored.
Step checked_step(const Layout &layout, const Call &call);

} // namespace group_query

} // namespace sluice_ort
