//===- args.h - one attention call in one struct --------------------------------------------------------===//
//
// A sluice_attention_args with all that it points to. Lengths are those of the call, never "the plan's".
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "calls/problem.h"

#include <sluice/attention.h>

#include <cmath>
#include <cstdint>

namespace sluice::calls {

/// The scale of a call that gives none.
inline double usual_scale(const Problem &problem) {
  return 1 / std::sqrt(double(problem.head_dim_qk));
}

struct Args {
  int32_t batch = 0;
  int32_t q_len = 0, kv_len = 0; // of each sequence, or their maximum
  double scale = 0;              // the caller's, or 1 / sqrt(head_dim_qk)
  sluice_tensor q = {}, k = {}, v = {}, o = {}, lse = {};
  const int32_t *q_starts = nullptr, *kv_starts = nullptr;
  const int32_t *q_lengths = nullptr, *kv_lengths = nullptr;
  int64_t q_tokens = 0, kv_tokens = 0; // with starts: rows of the tensors

  // Pages. With a stride of 0, all sequences share one table.
  const void *page_table = nullptr;
  int64_t page_table_stride = 0, page_table_head_stride = 0;
  const int32_t *page_starts = nullptr;
  int64_t page_count = 0;

  // Scales: of one number or one per head, else in tensors.
  const float *q_scale = nullptr, *k_scale = nullptr, *v_scale = nullptr, *o_scale = nullptr;
  sluice_tensor k_scales = {}, v_scales = {}, k_zeros = {}, v_zeros = {};

  // Masks and scores.
  sluice_tensor bias = {}, mask = {};
  const float *bias_scale = nullptr, *alibi_slopes = nullptr, *sink_logits = nullptr;
  int64_t bias_scale_batch_stride = 0, alibi_batch_stride = 0;
  const int32_t *diagonals = nullptr, *causal = nullptr, *spans = nullptr;
  int64_t span_count = 0;

  // The second set of keys.
  int32_t prefix_count = 0, prefix_len = 0;
  const int32_t *prefix_q_starts = nullptr, *prefix_lengths = nullptr;
  const void *prefix_page_table = nullptr;
  int64_t prefix_page_table_stride = 0;
  const int32_t *prefix_page_starts = nullptr;
  sluice_tensor prefix_k = {}, prefix_v = {}; // not in pages
};

} // namespace sluice::calls
