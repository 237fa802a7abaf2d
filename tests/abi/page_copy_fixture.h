//===- page_copy_fixture.h - good copies of pages and gathers, and a device for them --------------------===//
#pragma once

#include "cache_op_device.h"

namespace sluice::test {

/// 3 pairs of pages of 16 rows, 2 heads of 128 and 64.
inline sluice_page_copy good_copy() {
  sluice_page_copy copy;
  sluice_page_copy_init(&copy, sizeof copy);
  copy.source_type = copy.target_type = SLUICE_F16;
  copy.kv_heads = 2;
  copy.head_dim_qk = 128;
  copy.head_dim_v = 64;
  copy.page_size = 16;
  copy.k_source = {device_memory, {16 * 256, 256, 128, 1}};
  copy.v_source = {device_memory + 16, {16 * 128, 128, 64, 1}};
  copy.k_target = {device_memory + 32, {16 * 256 + 8, 128, 16 * 128, 1}};
  copy.v_target = {device_memory + 48, {16 * 128 + 8, 64, 16 * 64, 1}};
  copy.pairs = device_memory + 4;
  copy.pair_count = 3;
  copy.page_count = 9;
  return copy;
}

/// 2 sequences in 7 rows.
inline sluice_gather good_gather() {
  sluice_gather gather;
  sluice_gather_init(&gather, sizeof gather);
  gather.cache_type = gather.out_type = SLUICE_F16;
  gather.kv_heads = 2;
  gather.head_dim_qk = 128;
  gather.head_dim_v = 64;
  gather.page_size = 16;
  gather.page_table_kind = SLUICE_PAGE_TABLE_BLOCK;
  gather.batch = 2;
  gather.tokens = 7;
  gather.k_cache = {device_memory, {16 * 256, 256, 128, 1}};
  gather.v_cache = {device_memory + 16, {16 * 128, 128, 64, 1}};
  gather.k_out = {device_memory + 32, {0, 264, 128, 1}};
  gather.v_out = {device_memory + 48, {0, 136, 64, 1}};
  gather.out_starts = reinterpret_cast<const int32_t *>(device_memory + 4);
  gather.kv_lengths = reinterpret_cast<const int32_t *>(device_memory + 8);
  gather.page_table = device_memory + 12;
  gather.page_table_stride = 5;
  gather.page_count = 9;
  return gather;
}

inline const float *scale() {
  return reinterpret_cast<const float *>(device_memory + 64);
}
template <typename Call> void drop_v(Call &call, sluice_tensor &v, sluice_tensor &other_v) {
  call.flags |= SLUICE_V_IN_K;
  call.head_dim_v = 0;
  v = other_v = {};
}
inline sluice_page_copy good_fp8_copy() {
  sluice_page_copy copy = good_copy();
  copy.target_type = SLUICE_E4M3FNUZ;
  copy.k_scale_kind = SLUICE_SCALE_PER_HEAD;
  copy.v_scale_kind = SLUICE_SCALE_PER_TENSOR;
  copy.k_scale = copy.v_scale = scale();
  return copy;
}

/// Pages of U4 in groups of 32, with zero points, and other strides of the target's arrays.
inline sluice_page_copy good_u4_copy() {
  sluice_page_copy copy = good_copy();
  copy.flags = SLUICE_ZERO_POINTS;
  copy.source_type = copy.target_type = SLUICE_U4;
  copy.k_target.stride[0] = 16 * 256 + 32;
  copy.v_target.stride[0] = 16 * 128 + 32;
  copy.k_scale_kind = copy.v_scale_kind = SLUICE_SCALE_PER_GROUP;
  copy.scale_group = 32;
  copy.k_scales = copy.k_zeros = {device_memory + 2, {16 * 8, 8, 4, 1}};
  copy.v_scales = copy.v_zeros = {device_memory + 4, {16 * 4, 4, 2, 1}};
  copy.k_target_scales = copy.k_target_zeros = {device_memory + 6, {16 * 10, 10, 5, 1}};
  copy.v_target_scales = copy.v_target_zeros = {device_memory + 8, {16 * 4, 4, 2, 1}};
  return copy;
}
/// Keys of I8 with scales per token and values with scales per page, to F16.
inline sluice_gather good_i8_gather() {
  sluice_gather gather = good_gather();
  gather.cache_type = SLUICE_I8;
  gather.k_scale_kind = SLUICE_SCALE_PER_TOKEN;
  gather.v_scale_kind = SLUICE_SCALE_PER_PAGE;
  gather.k_scales = {device_memory + 4, {40, 2, 1, 0}};
  gather.v_scales = {device_memory + 8, {3, 77, 1, 0}};
  return gather;
}

} // namespace sluice::test
