//===- cache_ops.h - appends, copies and gathers, each in one struct ------------------------------------===//
//
// As args.h, for the calls of cache.h. Their flags are page_index_64, v_in_k and zero_points of problem.h.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <sluice/cache.h>

#include <cstdint>

namespace sluice::calls {

struct Append {
  uint32_t flags = 0;
  uint32_t source_type = 0, cache_type = 0;
  int32_t kv_heads = 0, head_dim_qk = 0, head_dim_v = 0; // head_dim_v is 0 with v_in_k
  int32_t page_size = 0;
  uint32_t page_table_kind = 0; // none with slots
  int32_t k_pack = 0, v_pack = 0;
  uint32_t k_scale_kind = 0, v_scale_kind = 0;
  int32_t scale_group = 0;
  int32_t tokens = 0, batch = 0, tail_dim = 0;
  sluice_tensor k = {}, v = {}, k_tail = {}, k_cache = {}, v_cache = {};
  const int64_t *slots = nullptr;
  const int32_t *starts = nullptr, *kv_lengths = nullptr;
  const void *page_table = nullptr;
  int64_t page_table_stride = 0;
  const int32_t *page_starts = nullptr;
  int64_t page_count = 0;
  const int32_t *positions = nullptr;
  const float *k_scale = nullptr, *v_scale = nullptr;
  sluice_tensor k_scales = {}, v_scales = {}, k_zeros = {}, v_zeros = {};

  // Rotation.
  int32_t rotary_dim = 0, rotary_first = 0;
  uint32_t rotary_style = 0, rotary_type = SLUICE_F32;
  const void *rotary = nullptr, *rotary_sin = nullptr; // without rotary_sin, sines follow the cosines
  int64_t rotary_stride = 0;

  // Q and norms.
  int32_t q_heads = 0;
  sluice_tensor q = {}, q_out = {}, q_tail = {};
  const void *q_norm = nullptr, *k_norm = nullptr;
  float norm_epsilon = 0;
  uint32_t norm_type = 0;
};

struct PageCopy {
  uint32_t flags = 0;
  uint32_t source_type = 0, target_type = 0;
  int32_t kv_heads = 0, head_dim_qk = 0, head_dim_v = 0; // head_dim_v is 0 with v_in_k
  int32_t page_size = 0;
  int32_t source_k_pack = 0, target_k_pack = 0;
  uint32_t k_scale_kind = 0, v_scale_kind = 0;
  int32_t scale_group = 0;
  sluice_tensor k_source = {}, v_source = {}, k_target = {}, v_target = {};
  const void *pairs = nullptr;
  int64_t pair_count = 0, page_count = 0;
  const float *k_scale = nullptr, *v_scale = nullptr;
  sluice_tensor k_scales = {}, v_scales = {}, k_zeros = {}, v_zeros = {}; // of the source
  sluice_tensor k_target_scales = {}, v_target_scales = {}, k_target_zeros = {}, v_target_zeros = {};
};

struct Gather {
  uint32_t flags = 0;
  uint32_t cache_type = 0, out_type = 0;
  int32_t kv_heads = 0, head_dim_qk = 0, head_dim_v = 0; // head_dim_v is 0 with v_in_k
  int32_t page_size = 0;
  uint32_t page_table_kind = 0;
  int32_t k_pack = 0;
  uint32_t k_scale_kind = 0, v_scale_kind = 0;
  int32_t scale_group = 0;
  int32_t batch = 0, tokens = 0;
  sluice_tensor k_cache = {}, v_cache = {}, k_out = {}, v_out = {};
  const int32_t *out_starts = nullptr, *kv_lengths = nullptr, *first_keys = nullptr;
  const void *page_table = nullptr;
  int64_t page_table_stride = 0;
  const int32_t *page_starts = nullptr;
  int64_t page_count = 0;
  const float *k_scale = nullptr, *v_scale = nullptr;
  sluice_tensor k_scales = {}, v_scales = {}, k_zeros = {}, v_zeros = {}; // of the cache
  sluice_tensor k_out_scales = {}, v_out_scales = {}, k_out_zeros = {}, v_out_zeros = {};
};

} // namespace sluice::calls
