//===- page_copy.cpp - copies of pages and gathers on the host, in plain loops --------------------------===//
#include "reference/page_copy.h"

#include "calls/cache_ops.h"
#include "calls/problem.h"
#include "reference/scores.h"

#include <cstring>

namespace sluice::reference {
namespace {

/// The common parts of K and V.
struct Side {
  const sluice_tensor &from, &to;
  uint32_t from_type, to_type;
  int64_t head_dim, from_pack, to_pack; // packs are 0 without packs
  uint32_t scale_kind;
  const float *scale;
  const sluice_tensor &scales, &zeros, &to_scales, &to_zeros;
  int32_t scale_group;
};

/// Elements that are stored together, and their bytes.
struct Unit {
  int64_t elements, bytes;
};
Unit unit_of(uint32_t type) {
  switch (type) {
  case SLUICE_F32:
    return {1, 4};
  case SLUICE_F16:
  case SLUICE_BF16:
    return {1, 2};
  case SLUICE_U4:
    return {2, 1};
  case SLUICE_Q8_0:
    return {32, 34};
  case SLUICE_Q4_0:
    return {32, 18};
  default:
    return {1, 1};
  }
}

void copy_bits(const sluice_tensor &to, int64_t target, const sluice_tensor &from, int64_t source,
               const Unit &unit) {
  std::memmove(static_cast<char *>(to.data) + target / unit.elements * unit.bytes,
               static_cast<const char *>(from.data) + source / unit.elements * unit.bytes,
               size_t(unit.bytes));
}

/// Numbers of a row in an array: one, or one for each group. A page has those of its row 0.
int64_t groups_of(const Side &side) {
  return side.scale_kind == SLUICE_SCALE_PER_GROUP ? side.head_dim / side.scale_group : 1;
}
int64_t row_of_scale(const Side &side, const Row &row) {
  return side.scale_kind == SLUICE_SCALE_PER_PAGE ? 0 : row.inner;
}

void copy_array(const Side &side, const sluice_tensor &from_array, const sluice_tensor &to_array,
                int64_t head, const Row &from, const Row &to, bool to_pages) {
  if (from_array.data == nullptr) return;
  const bool has_groups = side.scale_kind == SLUICE_SCALE_PER_GROUP;
  const Unit unit = {1, has_groups ? 2 : 4};
  const int64_t to_row = to_pages ? row_of_scale(side, to) : to.inner;
  for (int64_t group = 0; group < groups_of(side); ++group)
    copy_bits(to_array, index_of(to_array, to.outer, to_row, head, has_groups ? group : 0), from_array,
              index_of(from_array, from.outer, row_of_scale(side, from), head, has_groups ? group : 0), unit);
}

/// The value of an element of the source.
double value_of(const Side &side, const Row &from, int64_t head, int64_t e) {
  const double number = load(side.from.data, side.from_type,
                             packed_index(side.from, side.from_pack, from.outer, from.inner, head, e));
  if (side.scale_kind < SLUICE_SCALE_PER_TOKEN) return number * scale_of(side.scale_kind, side.scale, head);
  const bool has_groups = side.scale_kind == SLUICE_SCALE_PER_GROUP;
  const int64_t at = index_of(side.scales, from.outer, row_of_scale(side, from), head,
                              has_groups ? e / side.scale_group : 0);
  if (!has_groups) return number * load(side.scales.data, SLUICE_F32, at);
  const double zero = side.zeros.data != nullptr ? load(side.zeros.data, SLUICE_F16, at) : 8;
  return (number - zero) * load(side.scales.data, SLUICE_F16, at);
}

/// An element of 16 bits over its scale.
double divided(const Side &side, const Row &from, int64_t head, int64_t e) {
  const int64_t at = packed_index(side.from, side.from_pack, from.outer, from.inner, head, e);
  return load(side.from.data, side.from_type, at) / scale_of(side.scale_kind, side.scale, head);
}

void copy_row(const Side &side, int64_t heads, const Row &from, const Row &to, bool to_pages) {
  const Unit unit = unit_of(side.from_type);
  const auto target_of = [&](int64_t head, int64_t e) {
    return packed_index(side.to, side.to_pack, to.outer, to.inner, head, e);
  };
  for (int64_t head = 0; head < heads; ++head) {
    if (side.from_type == side.to_type) {
      for (int64_t e = 0; e < side.head_dim; e += unit.elements)
        copy_bits(side.to, target_of(head, e), side.from,
                  packed_index(side.from, side.from_pack, from.outer, from.inner, head, e), unit);
      copy_array(side, side.scales, side.to_scales, head, from, to, to_pages);
      copy_array(side, side.zeros, side.to_zeros, head, from, to, to_pages);
      continue;
    }
    for (int64_t e = 0; e < side.head_dim; ++e) {
      const double value =
          unit_of(side.to_type).bytes == 1 ? divided(side, from, head, e) : value_of(side, from, head, e);
      store(side.to.data, side.to_type, target_of(head, e), value);
    }
  }
}

} // namespace

PageTable pairs_of(const calls::PageCopy &call) {
  return {call.pairs, (call.flags & calls::page_index_64) != 0, false, 0, nullptr};
}

PageTable table_of(const calls::Gather &call) {
  return {call.page_table, (call.flags & calls::page_index_64) != 0,
          call.page_table_kind == SLUICE_PAGE_TABLE_CSR, call.page_table_stride, call.page_starts};
}

void copy_pages(const calls::PageCopy &call) {
  const Side k = {call.k_source,       call.k_target,      call.source_type,   call.target_type,
                  call.head_dim_qk,    call.source_k_pack, call.target_k_pack, call.k_scale_kind,
                  call.k_scale,        call.k_scales,      call.k_zeros,       call.k_target_scales,
                  call.k_target_zeros, call.scale_group};
  const Side v = {call.v_source,
                  call.v_target,
                  call.source_type,
                  call.target_type,
                  call.head_dim_v,
                  0,
                  0,
                  call.v_scale_kind,
                  call.v_scale,
                  call.v_scales,
                  call.v_zeros,
                  call.v_target_scales,
                  call.v_target_zeros,
                  call.scale_group};
  const PageTable pairs = pairs_of(call);
  const bool has_pairs = call.pairs != nullptr;
  for (int64_t i = 0; i < (has_pairs ? call.pair_count : call.page_count); ++i) {
    const int64_t from = has_pairs ? pairs.page(2 * i) : i, to = has_pairs ? pairs.page(2 * i + 1) : i;
    if (from < 0 || to < 0) continue;
    for (int64_t row = 0; row < call.page_size; ++row) {
      copy_row(k, call.kv_heads, {from, row}, {to, row}, true);
      if (!(call.flags & calls::v_in_k)) copy_row(v, call.kv_heads, {from, row}, {to, row}, true);
    }
  }
}

void gather(const calls::Gather &call) {
  const Side k = {call.k_cache,
                  call.k_out,
                  call.cache_type,
                  call.out_type,
                  call.head_dim_qk,
                  call.k_pack,
                  0,
                  call.k_scale_kind,
                  call.k_scale,
                  call.k_scales,
                  call.k_zeros,
                  call.k_out_scales,
                  call.k_out_zeros,
                  call.scale_group};
  const Side v = {call.v_cache,
                  call.v_out,
                  call.cache_type,
                  call.out_type,
                  call.head_dim_v,
                  0,
                  0,
                  call.v_scale_kind,
                  call.v_scale,
                  call.v_scales,
                  call.v_zeros,
                  call.v_out_scales,
                  call.v_out_zeros,
                  call.scale_group};
  const PageTable table = table_of(call);
  for (int64_t b = 0; b < call.batch; ++b) {
    const int64_t first = call.first_keys != nullptr ? call.first_keys[b] : 0;
    for (int64_t key = first; key < call.kv_lengths[b]; ++key) {
      const Row from = {table.page(table.place(b, key / call.page_size)), key % call.page_size},
                to = {0, call.out_starts[b] + key - first};
      copy_row(k, call.kv_heads, from, to, false);
      if (!(call.flags & calls::v_in_k)) copy_row(v, call.kv_heads, from, to, false);
    }
  }
}

} // namespace sluice::reference
