//===- cache_op_fixture.h - good appends and merges -----------------------------------------------------===//
#pragma once

#include "fixture.h"

namespace sluice::test {

/// A context of the existing FakeHip, with a kernel from F16 into F16 caches and one from F32 to F16.
inline ContextHandle cache_op_context(uint32_t kind = SLUICE_DEVICE_HIP) {
  static const std::vector<std::byte> pack = cache_op_pack();
  sluice_context_desc desc = context_desc(kind, pack);
  return make_context(desc);
}

/// 5 rows of 2 heads by slots, pages of 16.
inline sluice_append good_append() {
  sluice_append append;
  sluice_append_init(&append, sizeof append);
  append.source_type = append.cache_type = SLUICE_F16;
  append.kv_heads = 2;
  append.head_dim_qk = 128;
  append.head_dim_v = 64;
  append.page_size = 16;
  append.tokens = 5;
  append.k = {device_memory, {0, 256, 128, 1}};
  append.v = {device_memory + 16, {0, 128, 64, 1}};
  append.k_cache = {device_memory + 32, {16 * 256, 256, 128, 1}};
  append.v_cache = {device_memory + 48, {16 * 128, 128, 64, 1}};
  append.slots = reinterpret_cast<const int64_t *>(device_memory + 64);
  return append;
}

/// The same by a table of two sequences, with rotation of 64 elements.
inline sluice_append good_table_append() {
  sluice_append append = good_append();
  append.slots = nullptr;
  append.page_table_kind = SLUICE_PAGE_TABLE_BLOCK;
  append.batch = 2;
  append.starts = reinterpret_cast<const int32_t *>(device_memory + 4);
  append.kv_lengths = reinterpret_cast<const int32_t *>(device_memory + 8);
  append.page_table = device_memory + 12;
  append.page_table_stride = 7;
  append.rotary_dim = 64;
  append.rotary = reinterpret_cast<const float *>(device_memory + 20);
  append.rotary_stride = 64;
  return append;
}

/// All that a step does: Q stored where it was, norms, tails of their own for K, and a rotation of the tails.
inline sluice_append good_step() {
  sluice_append append = good_table_append();
  append.tail_dim = append.rotary_dim = 64;
  append.rotary_first = 64;
  append.rotary_type = SLUICE_BF16;
  append.rotary_sin = device_memory + 40;
  append.k.stride[1] = 128;
  append.k.stride[2] = 64;
  append.k_tail = {device_memory + 80, {0, 64, 0, 1}}; // one for all heads
  append.q_heads = 4;
  append.q = append.q_out = {device_memory + 96, {0, 512, 128, 1}};
  append.q_norm = device_memory + 100;
  append.k_norm = device_memory + 104;
  append.norm_epsilon = 1e-6f;
  append.norm_type = SLUICE_F32;
  return append;
}

/// Into FP8, with scales that are computed for K, and those of pages for V.
inline sluice_append good_scales() {
  sluice_append append = good_append();
  append.cache_type = SLUICE_E5M2FNUZ;
  append.k_scale_kind = SLUICE_SCALE_PER_TOKEN;
  append.v_scale_kind = SLUICE_SCALE_PER_PAGE;
  append.k_scales = {device_memory + 4, {32, 2, 1, 0}};
  append.v_scales = {device_memory + 8, {2, 99, 1, 1}};
  return append;
}

/// V by columns, in packs of 8 of the 32 rows of a page.
inline sluice_append good_columns() {
  sluice_append append = good_append();
  append.page_size = 32;
  append.k_cache.stride[0] = 32 * 256;
  append.v_pack = 8;
  append.v_cache = {device_memory + 48, {4096, 1024, 512, 8}};
  return append;
}

/// Into blocks of ggml, with a rotation by halves.
inline sluice_append good_blocks() {
  sluice_append append = good_table_append();
  append.cache_type = SLUICE_Q4_0;
  append.k_cache.data = append.v_cache.data = device_memory + 34;
  return append;
}

/// Into groups of 4 bits, with zero points.
inline sluice_append good_groups() {
  sluice_append append = good_append();
  append.flags = SLUICE_ZERO_POINTS;
  append.cache_type = SLUICE_U4;
  append.k_scale_kind = append.v_scale_kind = SLUICE_SCALE_PER_GROUP;
  append.scale_group = 32;
  append.k_scales = {device_memory + 2, {16 * 8, 8, 4, 1}};
  append.v_scales = {device_memory + 4, {16 * 4, 4, 2, 1}};
  append.k_zeros = {device_memory + 6, {16 * 8, 8, 4, 1}};
  append.v_zeros = {device_memory + 10, {16 * 4, 4, 2, 1}};
  return append;
}

/// Into FP8, x-packed, with scales.
inline sluice_append good_fp8_append() {
  sluice_append append = good_table_append();
  append.flags = SLUICE_PAGE_INDEX_64;
  append.page_table = device_memory + 24;
  append.page_table_kind = SLUICE_PAGE_TABLE_CSR;
  append.page_table_stride = 0;
  append.page_starts = reinterpret_cast<const int32_t *>(device_memory + 28);
  append.cache_type = SLUICE_E4M3FNUZ;
  append.k_scale_kind = SLUICE_SCALE_PER_HEAD;
  append.v_scale_kind = SLUICE_SCALE_PER_TENSOR;
  append.k_scale = append.v_scale = reinterpret_cast<const float *>(device_memory + 36);
  append.k_pack = 16;
  append.k_cache.stride[0] = 2 * 128 * 16;
  append.k_cache.stride[1] = 16;
  append.k_cache.stride[2] = 128 * 16;
  append.k_cache.stride[3] = 16 * 16;
  return append;
}

/// 3 parts of 5 tokens and 2 heads, with LSE.
inline sluice_merge good_merge() {
  sluice_merge merge;
  sluice_merge_init(&merge, sizeof merge);
  merge.partial_type = SLUICE_F32;
  merge.o_type = SLUICE_F16;
  merge.parts = 3;
  merge.tokens = 5;
  merge.heads = 2;
  merge.head_dim_v = 64;
  merge.partial = {device_memory, {640, 128, 64, 1}};
  merge.partial_lse = {device_memory + 4, {10, 2, 1, 0}};
  merge.o = {device_memory + 16, {0, 128, 64, 1}};
  merge.lse = {device_memory + 8, {0, 2, 1, 0}};
  return merge;
}

} // namespace sluice::test
