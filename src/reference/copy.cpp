//===- copy.cpp - copies of pages and gathers on the host, in plain loops -------------------------------===//
#include "reference/copy.h"

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
};

int64_t bytes_of(uint32_t type) {
  return type == SLUICE_F32 ? 4 : type == SLUICE_F16 || type == SLUICE_BF16 ? 2 : 1;
}

void copy_row(const Side &side, int64_t heads, const Row &from, const Row &to) {
  for (int64_t head = 0; head < heads; ++head) {
    const double scale = scale_of(side.scale_kind, side.scale, head);
    for (int64_t e = 0; e < side.head_dim; ++e) {
      const int64_t source = packed_index(side.from, side.from_pack, from.outer, from.inner, head, e),
                    target = packed_index(side.to, side.to_pack, to.outer, to.inner, head, e);
      if (side.from_type == side.to_type) {
        const int64_t bytes = bytes_of(side.from_type);
        std::memmove(static_cast<char *>(side.to.data) + target * bytes,
                     static_cast<const char *>(side.from.data) + source * bytes, size_t(bytes));
        continue;
      }
      const double value = load(side.from.data, side.from_type, source);
      store(side.to.data, side.to_type, target,
            side.to_type == SLUICE_E4M3FNUZ ? value / scale : value * scale);
    }
  }
}

} // namespace

PageTable pairs_of(const sluice_page_copy &call) {
  return {call.pairs, (call.flags & SLUICE_PAGE_INDEX_64) != 0, false, 0, nullptr};
}

PageTable table_of(const sluice_gather &call) {
  return {call.page_table, (call.flags & SLUICE_PAGE_INDEX_64) != 0,
          call.page_table_kind == SLUICE_PAGE_TABLE_CSR, call.page_table_stride, call.page_starts};
}

void copy(const sluice_page_copy &call) {
  const Side k = {call.k_source,      call.k_target,     call.source_type,
                  call.target_type,   call.head_dim_qk,  call.source_k_pack,
                  call.target_k_pack, call.k_scale_kind, call.k_scale};
  const Side v = {call.v_source,     call.v_target, call.source_type, call.target_type, call.head_dim_v, 0, 0,
                  call.v_scale_kind, call.v_scale};
  const PageTable pairs = pairs_of(call);
  const bool has_pairs = call.pairs != nullptr;
  for (int64_t i = 0; i < (has_pairs ? call.pair_count : call.page_count); ++i) {
    const int64_t from = has_pairs ? pairs.page(2 * i) : i, to = has_pairs ? pairs.page(2 * i + 1) : i;
    if (from < 0 || to < 0) continue;
    for (int64_t row = 0; row < call.page_size; ++row) {
      copy_row(k, call.kv_heads, {from, row}, {to, row});
      if (!(call.flags & SLUICE_V_IN_K)) copy_row(v, call.kv_heads, {from, row}, {to, row});
    }
  }
}

void gather(const sluice_gather &call) {
  const Side k = {call.k_cache, call.k_out, call.cache_type,   call.out_type, call.head_dim_qk,
                  call.k_pack,  0,          call.k_scale_kind, call.k_scale};
  const Side v = {call.v_cache,      call.v_out,  call.cache_type, call.out_type, call.head_dim_v, 0, 0,
                  call.v_scale_kind, call.v_scale};
  const PageTable table = table_of(call);
  for (int64_t b = 0; b < call.batch; ++b) {
    const int64_t first = call.first_keys != nullptr ? call.first_keys[b] : 0;
    for (int64_t key = first; key < call.kv_lengths[b]; ++key) {
      const Row from = {table.page(table.place(b, key / call.page_size)), key % call.page_size},
                to = {0, call.out_starts[b] + key - first};
      copy_row(k, call.kv_heads, from, to);
      if (!(call.flags & SLUICE_V_IN_K)) copy_row(v, call.kv_heads, from, to);
    }
  }
}

} // namespace sluice::reference
