//===- call_kinds.h - good calls with each kind of keys, and with each feature --------------------------===//
#pragma once

#include "fixture.h"

namespace sluice::test {

inline const int32_t *array() {
  return reinterpret_cast<const int32_t *>(device_memory);
}
inline const float *floats(size_t byte = 0) {
  return reinterpret_cast<const float *>(device_memory + byte);
}

inline AttentionCall dense() {
  return good_call();
}

inline AttentionCall ragged() {
  AttentionCall call = good_call();
  make_ragged(call);
  return call;
}

inline AttentionCall paged() {
  AttentionCall call = good_call();
  make_paged(call);
  return call;
}

inline AttentionCall csr() {
  AttentionCall call = paged();
  call.format.page_table = SLUICE_PAGE_TABLE_CSR;
  call.keys[0].pages.stride = 0;
  call.keys[0].pages.starts = array();
  return call;
}

/// Packs of 8 elements: [page][head][pack][row][8].
inline AttentionCall packed() {
  AttentionCall call = paged();
  call.format.k.pack = 8;
  call.kv.k = sluice_pages_x_packed(call.kv.k.data, 16, 2, 128, 8);
  return call;
}

inline AttentionCall v_in_k() {
  AttentionCall call = good_call();
  call.format.flags = SLUICE_KV_V_IN_K;
  call.format.v = {};
  call.kv.v = {};
  return call;
}

inline AttentionCall with_bias() {
  AttentionCall call = good_call();
  call.scores.bias_type = SLUICE_F16;
  call.scores_args.bias = {device_memory, {0, 5 * 8, 8, 1}};
  return call;
}

inline AttentionCall with_mask() {
  AttentionCall call = good_call();
  call.mask.flags |= SLUICE_MASK_BITS;
  call.mask_args.bits = {device_memory + 1, {5, 0, 1, 1}};
  return call;
}

inline AttentionCall with_arrays() {
  AttentionCall call = good_call();
  call.scores.flags = SLUICE_SCORES_ALIBI | SLUICE_SCORES_SINK;
  call.attention.q.scale_kind = call.format.k.scale_kind = SLUICE_SCALE_PER_HEAD;
  call.format.v.scale_kind = SLUICE_SCALE_PER_TENSOR;
  call.scores_args.alibi_slopes = call.scores_args.sinks = floats();
  call.args.q_scale = floats(4);
  call.scales.k.data = call.scales.v.data = device_memory + 4;
  return call;
}

inline AttentionCall with_key_scales() {
  AttentionCall call = paged();
  call.format.k.scale_kind = SLUICE_SCALE_PER_TOKEN;
  call.format.v.scale_kind = SLUICE_SCALE_PER_PAGE;
  call.scales.k = {device_memory, {64, 4, 1, 0}};
  call.scales.v = {device_memory, {4, 0, 1, 0}};
  return call;
}

/// Rows of ggml's blocks, which are aligned to 2 bytes.
inline AttentionCall with_blocks() {
  AttentionCall call = good_call();
  call.format.k.type = call.format.v.type = SLUICE_Q4_0;
  call.kv.k.data = device_memory + 2;
  call.kv.v.data = device_memory + 18;
  return call;
}

/// Rows of 4-bit numbers with groups of 64, each with a number to subtract.
inline AttentionCall with_groups() {
  AttentionCall call = good_call();
  call.format.k = call.format.v = {SLUICE_U4, SLUICE_SCALE_PER_GROUP, 64, 1, 0, 0};
  call.scales.k = {device_memory + 2, {7 * 2 * 2, 2 * 2, 2, 1}};
  call.scales.v = {device_memory, {7 * 2 * 4, 2 * 4, 4, 1}};
  call.scales.k_zeros = {device_memory + 6, {7 * 2 * 2, 2 * 2, 2, 1}};
  call.scales.v_zeros = {device_memory + 4, {7 * 2 * 4, 2 * 4, 4, 1}};
  return call;
}

inline AttentionCall with_factors() {
  AttentionCall call = with_bias();
  call.scores.flags = SLUICE_SCORES_BIAS_SCALE | SLUICE_SCORES_ALIBI;
  call.scores_args.alibi_slopes = call.scores_args.bias_scale = floats();
  call.scores_args.alibi_stride = call.scores_args.bias_scale_stride = 4;
  return call;
}

/// What masks need to know of each sequence.
inline AttentionCall with_sequence_masks() {
  AttentionCall call = good_call();
  call.mask.flags = SLUICE_MASK_CAUSAL_BY_SEQUENCE | SLUICE_MASK_SPANS;
  call.mask.alignment = SLUICE_GIVEN_DIAGONAL;
  call.mask_args.diagonals = call.mask_args.causal = call.mask_args.spans = array();
  call.mask_args.span_count = 3;
  return call;
}

inline AttentionCall to_fp8() {
  AttentionCall call = good_call();
  call.attention.o.type = SLUICE_E4M3FNUZ;
  call.attention.o.scale_kind = SLUICE_SCALE_PER_HEAD;
  call.args.o_scale = floats();
  return call;
}

/// A context whose kernels can do everything.
inline ContextHandle able_context(uint32_t kind) {
  static const std::vector<std::byte> pack = test_pack(all_features(), {"", "u4", "q4_0"});
  return make_context(context_desc(kind, pack));
}

} // namespace sluice::test
