//===- append.cpp - an append on the host, in plain loops -----------------------------------------------===//
#include "reference/append.h"

#include "reference/scores.h"

#include <utility>
#include <vector>

namespace sluice::reference {
namespace {

/// The destination of a new row.
struct Place {
  int64_t page, row, key;
};

/// The common parts of K and V.
struct Side {
  const sluice_tensor &rows, &cache;
  int64_t head_dim, pack; // pack is 0 without packs
  uint32_t scale_kind;
  const float *scale;
};

/// The two elements that a rotation combines.
std::pair<int64_t, int64_t> pair_of(const sluice_append &call, int64_t number) {
  if (call.rotary_style == SLUICE_ROTARY_PAIRS) return {2 * number, 2 * number + 1};
  return {number, number + call.rotary_dim / 2};
}

void rotate(const sluice_append &call, int64_t position, std::vector<double> &values) {
  const float *cosines = call.rotary + position * call.rotary_stride;
  const float *sines = cosines + call.rotary_dim / 2;
  for (int64_t number = 0; number < call.rotary_dim / 2; ++number) {
    const auto [first, second] = pair_of(call, number);
    const double x = values[size_t(first)], y = values[size_t(second)];
    values[size_t(first)] = x * cosines[number] - y * sines[number];
    values[size_t(second)] = y * cosines[number] + x * sines[number];
  }
}

void append_row(const sluice_append &call, const Side &side, int64_t t, const Place &place, bool rotates) {
  std::vector<double> values(size_t(side.head_dim));
  for (int64_t head = 0; head < call.kv_heads; ++head) {
    for (int64_t e = 0; e < side.head_dim; ++e)
      values[size_t(e)] = load(side.rows.data, call.source_type, index_of(side.rows, 0, t, head, e));
    if (rotates) rotate(call, call.positions != nullptr ? call.positions[t] : place.key, values);
    const double scale = scale_of(side.scale_kind, side.scale, head);
    for (int64_t e = 0; e < side.head_dim; ++e) {
      store(side.cache.data, call.cache_type,
            packed_index(side.cache, side.pack, place.page, place.row, head, e), values[size_t(e)] / scale);
    }
  }
}

void append_row(const sluice_append &call, int64_t t, const Place &place) {
  const Side k = {call.k, call.k_cache, call.head_dim_qk, call.k_pack, call.k_scale_kind, call.k_scale};
  append_row(call, k, t, place, call.rotary_dim != 0);
  if (call.flags & SLUICE_V_IN_K) return;
  const Side v = {call.v, call.v_cache, call.head_dim_v, 0, call.v_scale_kind, call.v_scale};
  append_row(call, v, t, place, false);
}

} // namespace

PageTable table_of(const sluice_append &call) {
  return {call.page_table, (call.flags & SLUICE_PAGE_INDEX_64) != 0,
          call.page_table_kind == SLUICE_PAGE_TABLE_CSR, call.page_table_stride, call.page_starts};
}

void append(const sluice_append &call) {
  if (call.slots != nullptr) {
    for (int64_t t = 0; t < call.tokens; ++t) {
      const int64_t slot = call.slots[t];
      if (slot >= 0) append_row(call, t, {slot / call.page_size, slot % call.page_size, 0});
    }
    return;
  }
  const PageTable table = table_of(call);
  for (int64_t b = 0; b < call.batch; ++b) {
    for (int64_t t = call.starts[b]; t < call.starts[b + 1]; ++t) {
      const int64_t key = int64_t{call.kv_lengths[b]} - call.starts[b + 1] + t;
      append_row(call, t, {table.page(table.place(b, key / call.page_size)), key % call.page_size, key});
    }
  }
}

} // namespace sluice::reference
