//===- append.cpp - an append on the host, in plain loops -----------------------------------------------===//
#include "reference/append.h"

#include "reference/scores.h"

#include <algorithm>
#include <cmath>
#include <limits>
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
  int64_t head_dim;
  int64_t pack = 0; // 0 without packs
  uint32_t scale_kind = SLUICE_SCALE_NONE;
  const float *scale = nullptr;
  sluice_tensor scales = {}; // PER_TOKEN, PER_PAGE
  bool rotates = false;
  sluice_tensor tail = {};    // of the last tail_dim elements; data is NULL if `rows` has them
  const void *norm = nullptr; // nullable
};

/// The two elements that a rotation combines.
std::pair<int64_t, int64_t> pair_of(const sluice_append &call, int64_t number) {
  const int64_t first = call.rotary_first;
  if (call.rotary_style == SLUICE_ROTARY_PAIRS) return {first + 2 * number, first + 2 * number + 1};
  return {first + number, first + number + call.rotary_dim / 2};
}

void rotate(const sluice_append &call, int64_t position, std::vector<double> &values) {
  const uint32_t type = call.rotary_type == 0 ? uint32_t(SLUICE_F32) : call.rotary_type;
  const bool apart = call.rotary_sin != nullptr;
  for (int64_t number = 0; number < call.rotary_dim / 2; ++number) {
    const int64_t at = position * call.rotary_stride + number;
    const double cosine = load(call.rotary, type, at);
    const double sine =
        apart ? load(call.rotary_sin, type, at) : load(call.rotary, type, at + call.rotary_dim / 2);
    const auto [first, second] = pair_of(call, number);
    const double x = values[size_t(first)], y = values[size_t(second)];
    values[size_t(first)] = x * cosine - y * sine;
    values[size_t(second)] = y * cosine + x * sine;
  }
}

/// The first `count` elements become x * weight / sqrt(mean(x^2) + epsilon).
void normalise(const sluice_append &call, const void *weights, int64_t count, std::vector<double> &values) {
  const uint32_t type = call.norm_type == 0 ? call.source_type : call.norm_type;
  double sum = 0;
  for (int64_t e = 0; e < count; ++e)
    sum += values[size_t(e)] * values[size_t(e)];
  // The sum is one of F32.
  const double factor = sum > std::numeric_limits<float>::max()
                            ? 0
                            : 1 / std::sqrt(sum / double(count) + double{call.norm_epsilon});
  for (int64_t e = 0; e < count; ++e)
    values[size_t(e)] *= factor * load(weights, type, e);
}

/// A head's row of token t, after its norm and rotation.
std::vector<double> row_of(const sluice_append &call, const Side &side, int64_t t, int64_t head,
                           int64_t position) {
  std::vector<double> values(size_t(side.head_dim));
  const int64_t body =
      side.norm != nullptr || side.tail.data != nullptr ? side.head_dim - call.tail_dim : side.head_dim;
  for (int64_t e = 0; e < side.head_dim; ++e) {
    values[size_t(e)] =
        e < body || side.tail.data == nullptr
            ? load(side.rows.data, call.source_type, index_of(side.rows, 0, t, head, e))
            : load(side.tail.data, call.source_type, index_of(side.tail, 0, t, head, e - body));
  }
  if (side.norm != nullptr) normalise(call, side.norm, body, values);
  if (side.rotates) rotate(call, position, values);
  return values;
}

int64_t position_of(const sluice_append &call, int64_t t, int64_t key) {
  return call.positions != nullptr ? call.positions[t] : key;
}

double largest_of(uint32_t type) {
  return type == SLUICE_I8 ? 127 : type == SLUICE_E4M3FNUZ ? 240 : 57344;
}

/// The scale of a row; one of its own is computed, and stored.
double scale_of_row(const sluice_append &call, const Side &side, const Place &place, int64_t head,
                    const std::vector<double> &values) {
  if (side.scale_kind == SLUICE_SCALE_PER_PAGE)
    return load(side.scales.data, SLUICE_F32, index_of(side.scales, place.page, 0, head, 0));
  if (side.scale_kind != SLUICE_SCALE_PER_TOKEN) return scale_of(side.scale_kind, side.scale, head);
  double most = 0;
  for (const double value : values)
    if (std::isfinite(value)) most = std::max(most, std::fabs(value));
  const float scale = most == 0 ? 1 : float(most / largest_of(call.cache_type));
  store(side.scales.data, SLUICE_F32, index_of(side.scales, place.page, place.row, head, 0), scale);
  return scale;
}

void append_row(const sluice_append &call, const Side &side, int64_t t, const Place &place) {
  for (int64_t head = 0; head < call.kv_heads; ++head) {
    const std::vector<double> values = row_of(call, side, t, head, position_of(call, t, place.key));
    const double scale = scale_of_row(call, side, place, head, values);
    for (int64_t e = 0; e < side.head_dim; ++e) {
      store(side.cache.data, call.cache_type,
            packed_index(side.cache, side.pack, place.page, place.row, head, e), values[size_t(e)] / scale);
    }
  }
}

void append_row(const sluice_append &call, int64_t t, const Place &place) {
  const Side k = {.rows = call.k,
                  .cache = call.k_cache,
                  .head_dim = call.head_dim_qk,
                  .pack = call.k_pack,
                  .scale_kind = call.k_scale_kind,
                  .scale = call.k_scale,
                  .scales = call.k_scales,
                  .rotates = call.rotary_dim != 0,
                  .tail = call.k_tail,
                  .norm = call.k_norm};
  append_row(call, k, t, place);
  if (call.flags & SLUICE_V_IN_K) return;
  const Side v = {.rows = call.v,
                  .cache = call.v_cache,
                  .head_dim = call.head_dim_v,
                  .scale_kind = call.v_scale_kind,
                  .scale = call.v_scale,
                  .scales = call.v_scales};
  append_row(call, v, t, place);
}

void store_q(const sluice_append &call, int64_t t, int64_t key) {
  const Side q = {.rows = call.q,
                  .cache = call.q_out,
                  .head_dim = call.head_dim_qk,
                  .rotates = call.rotary_dim != 0,
                  .tail = call.q_tail,
                  .norm = call.q_norm};
  for (int64_t head = 0; head < call.q_heads; ++head) {
    const std::vector<double> values = row_of(call, q, t, head, position_of(call, t, key));
    for (int64_t e = 0; e < q.head_dim; ++e)
      store(call.q_out.data, call.source_type, index_of(call.q_out, 0, t, head, e), values[size_t(e)]);
  }
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
      store_q(call, t, 0);
    }
    return;
  }
  const PageTable table = table_of(call);
  for (int64_t b = 0; b < call.batch; ++b) {
    for (int64_t t = call.starts[b]; t < call.starts[b + 1]; ++t) {
      const int64_t key = int64_t{call.kv_lengths[b]} - call.starts[b + 1] + t;
      append_row(call, t, {table.page(table.place(b, key / call.page_size)), key % call.page_size, key});
      store_q(call, t, key);
    }
  }
}

} // namespace sluice::reference
