//===- page_copy_fixture.h - good copies of pages and gathers, and a device for them --------------------===//
#pragma once

#include "cache_op_device.h"

namespace sluice::test {

/// A cache of 9 pages of 16 rows, 2 heads of 128 and 64.
inline Kv good_pages() {
  Kv cache;
  cache.format.kv_heads = 2;
  cache.format.head_dim_qk = 128;
  cache.format.head_dim_v = 64;
  cache.format.page_size = 16;
  cache.format.page_table = SLUICE_PAGE_TABLE_BLOCK;
  set_types(cache, SLUICE_F16);
  cache.kv.k = sluice_pages_nhd(device_memory, 16, 2, 128);
  cache.kv.v = sluice_pages_nhd(device_memory + 16, 16, 2, 64);
  cache.kv.page_count = 9;
  return cache;
}

/// 3 pairs of such pages.
inline CopyCall good_copy() {
  CopyCall call;
  call.source = call.target = good_pages();
  call.target.kv.k = {device_memory + 32, {16 * 256 + 8, 128, 16 * 128, 1}};
  call.target.kv.v = {device_memory + 48, {16 * 128 + 8, 64, 16 * 64, 1}};
  call.args.pairs = device_memory + 4;
  call.args.pair_count = 3;
  return call;
}

/// 2 sequences in 7 rows.
inline GatherCall good_gather() {
  GatherCall call;
  call.source = call.target = good_pages();
  call.target.format.page_size = 0;
  call.target.format.page_table = SLUICE_PAGE_TABLE_NONE;
  call.target.kv.page_count = 0;
  call.target.kv.k = {device_memory + 32, {0, 264, 128, 1}};
  call.target.kv.v = {device_memory + 48, {0, 136, 64, 1}};
  call.args.batch = 2;
  call.args.tokens = 7;
  call.args.starts = at_byte<int32_t>(4);
  call.args.lengths = at_byte<int32_t>(8);
  call.args.pages.table = device_memory + 12;
  call.args.pages.stride = 5;
  return call;
}

/// Of calls with two caches.
template <typename Structs> void drop_v(Linked<Structs> &call) {
  put_v_in_k(call.source);
  put_v_in_k(call.target);
}
template <typename Structs> void set_both_types(Linked<Structs> &call, uint32_t type) {
  set_types(call.source, type);
  set_types(call.target, type);
}

inline void set_scales(Kv &cache, uint32_t k_kind, const sluice_tensor &k, uint32_t v_kind,
                       const sluice_tensor &v) {
  cache.format.k.scale_kind = k_kind;
  cache.format.v.scale_kind = v_kind;
  cache.scales.k = k;
  cache.scales.v = v;
}

inline CopyCall good_fp8_copy() {
  CopyCall call = good_copy();
  set_types(call.target, SLUICE_E4M3FNUZ);
  const sluice_tensor scales = {device_memory + 64, {}};
  set_scales(call.target, SLUICE_SCALE_PER_HEAD, scales, SLUICE_SCALE_PER_TENSOR, scales);
  return call;
}

/// Pages of U4 in groups of 32, with zero points, and other strides of the target's arrays.
inline CopyCall good_u4_copy() {
  CopyCall call = good_copy();
  set_groups(call.source);
  set_groups(call.target);
  call.target.kv.k.stride[0] = 16 * 256 + 32;
  call.target.kv.v.stride[0] = 16 * 128 + 32;
  call.source.scales.k_zeros = call.source.scales.k;
  call.source.scales.v_zeros = call.source.scales.v;
  call.target.scales.k = call.target.scales.k_zeros = {device_memory + 6, {16 * 10, 10, 5, 1}};
  call.target.scales.v = call.target.scales.v_zeros = {device_memory + 8, {16 * 4, 4, 2, 1}};
  return call;
}

/// Keys of I8 with scales per token and values with scales per page, to F16.
inline GatherCall good_i8_gather() {
  GatherCall call = good_gather();
  set_types(call.source, SLUICE_I8);
  set_scales(call.source, SLUICE_SCALE_PER_TOKEN, {device_memory + 4, {40, 2, 1, 0}}, SLUICE_SCALE_PER_PAGE,
             {device_memory + 8, {3, 77, 1, 0}});
  return call;
}

} // namespace sluice::test
