//===- append.cpp - an append on the host, in plain loops -----------------------------------------------===//
#include "reference/append.h"

#include "calls/cache_ops.h"
#include "calls/problem.h"
#include "reference/scores.h"
#include "support/half.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
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
  int64_t pack = 0;       // of elements of a row; 0 without packs
  int64_t token_pack = 0; // as calls::Append::v_pack
  uint32_t scale_kind = SLUICE_SCALE_NONE;
  const float *scale = nullptr;
  sluice_tensor scales = {}; // PER_TOKEN, PER_PAGE
  bool rotates = false;
  sluice_tensor tail = {};    // of the last tail_dim elements; data is NULL if `rows` has them
  const void *norm = nullptr; // nullable
  sluice_tensor zeros = {};   // with calls::zero_points
};

/// The two elements that a rotation combines.
std::pair<int64_t, int64_t> pair_of(const calls::Append &call, int64_t number) {
  const int64_t first = call.rotary_first;
  if (call.rotary_style == SLUICE_ROTARY_PAIRS) return {first + 2 * number, first + 2 * number + 1};
  return {first + number, first + number + call.rotary_dim / 2};
}

void rotate(const calls::Append &call, int64_t position, std::vector<double> &values) {
  const uint32_t type = call.rotary_type;
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
void normalise(const calls::Append &call, const void *weights, int64_t count, std::vector<double> &values) {
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
std::vector<double> row_of(const calls::Append &call, const Side &side, int64_t t, int64_t head,
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

int64_t position_of(const calls::Append &call, int64_t t, int64_t key) {
  return call.positions != nullptr ? call.positions[t] : key;
}

double largest_of(uint32_t type) {
  switch (type) {
  case SLUICE_I8:
    return 127;
  case SLUICE_E4M3FNUZ:
    return 240;
  case SLUICE_E4M3FN:
    return 448;
  default:
    return 57344; // both flavours of E5M2
  }
}

/// The scale of a row; one of its own is computed, and stored.
double scale_of_row(const calls::Append &call, const Side &side, const Place &place, int64_t head,
                    const std::vector<double> &values) {
  if (side.scale_kind == SLUICE_SCALE_PER_PAGE)
    return load(side.scales.data, SLUICE_F32, index_of(side.scales, place.page, 0, head, 0));
  if (side.scale_kind != SLUICE_SCALE_PER_TOKEN) return scale_of(side.scale_kind, side.scale, head);
  double most = 0;
  for (const double value : values)
    if (std::isfinite(value)) most = std::max(most, std::fabs(value));
  const auto quotient = float(most / largest_of(call.cache_type));
  const float scale = quotient == 0 ? 1 : quotient;
  store(side.scales.data, SLUICE_F32, index_of(side.scales, place.page, place.row, head, 0), scale);
  return scale;
}

/// A block or a group of elements with a common scale.
struct Group {
  float scale = 0, zero = 0;
  std::vector<int> numbers = {};
};

bool are_finite(std::span<const double> values) {
  return std::ranges::all_of(values, [](double value) { return std::isfinite(value); });
}

/// 1 / scale, or 0 where that is not finite.
float inverse_or_zero(float scale) {
  const float inverse = 1 / scale;
  return std::isfinite(inverse) ? inverse : 0;
}

constexpr float nan = std::numeric_limits<float>::quiet_NaN();

/// quantize_row_q8_0_ref.
Group q8_of(std::span<const double> values) {
  float most = 0;
  for (const double value : values)
    most = std::max(most, std::fabs(float(value)));
  Group group{.scale = are_finite(values) ? most / 127 : nan};
  const float inverse = inverse_or_zero(group.scale);
  for (const double value : values) {
    const float quotient = float(value) * inverse;
    group.numbers.push_back(std::isnan(quotient) ? 0 : int(std::round(quotient)));
  }
  return group;
}

/// quantize_row_q4_0_ref.
Group q4_of(std::span<const double> values) {
  float most = 0; // the first of the largest size, with its sign
  for (const double value : values)
    if (std::fabs(most) < std::fabs(float(value))) most = float(value);
  Group group{.scale = are_finite(values) ? most / -8 : nan};
  const float inverse = inverse_or_zero(group.scale);
  for (const double value : values) {
    const float product = float(double{float(value)} * inverse); // never joined with the sum
    const float number = product + 8.5f;
    group.numbers.push_back(std::isnan(number) ? 0 : std::min(15, int(number)));
  }
  return group;
}

float in_f16(float value) {
  return support::f16_to_float(support::f16_from_double(std::clamp(value, -65504.0f, 65504.0f)));
}

Group u4_of(std::span<const double> values, bool has_zero) {
  if (!are_finite(values)) return {nan, nan, std::vector<int>(values.size(), 0)};
  const auto [smallest, largest] = std::ranges::minmax(values);
  const float least = float(smallest), most = float(largest);
  Group group;
  group.scale = in_f16(has_zero ? (most - least) * (1.0f / 15) : std::max(most, -least) * (1.0f / 7));
  if (group.scale == 0 || (has_zero && std::fabs(least) > group.scale * 32768)) group.scale = 1;
  const float inverse = 1 / group.scale;
  group.zero = has_zero ? in_f16(-least * inverse) : 8;
  for (const double value : values) {
    const float number = std::nearbyint(std::fma(float(value), inverse, group.zero));
    group.numbers.push_back(int(std::clamp(number, 0.0f, 15.0f)));
  }
  return group;
}

/// Stores the bits of a number of F16, at any address.
void store_f16(uint8_t *to, float value) {
  const uint16_t bits = support::f16_from_double(value);
  to[0] = uint8_t(bits);
  to[1] = uint8_t(bits >> 8);
}

/// Stores a row of a head, group by group.
void store_groups(const calls::Append &call, const Side &side, const Place &place, int64_t head,
                  std::span<const double> values) {
  const bool is_u4 = call.cache_type == SLUICE_U4, has_zero = call.flags & calls::zero_points;
  const int64_t count = is_u4 ? call.scale_group : 32;
  const int64_t first = index_of(side.cache, place.page, place.row, head, 0);
  for (int64_t e = 0; e < int64_t(values.size()); e += count) {
    const auto group_values = values.subspan(size_t(e), size_t(count));
    auto *to = static_cast<uint8_t *>(side.cache.data);
    if (is_u4) {
      const Group group = u4_of(group_values, has_zero);
      const int64_t at = index_of(side.scales, place.page, place.row, head, e / count);
      store(side.scales.data, SLUICE_F16, at, group.scale);
      if (has_zero) store(side.zeros.data, SLUICE_F16, at, group.zero);
      to += (first + e) / 2;
      for (int64_t i = 0; i < count; i += 2)
        to[i / 2] = uint8_t(group.numbers[size_t(i)] | group.numbers[size_t(i + 1)] << 4);
    } else if (call.cache_type == SLUICE_Q8_0) {
      const Group group = q8_of(group_values);
      to += (first + e) / 32 * 34;
      store_f16(to, group.scale);
      for (int64_t i = 0; i < count; ++i)
        to[2 + i] = uint8_t(group.numbers[size_t(i)]);
    } else {
      const Group group = q4_of(group_values);
      to += (first + e) / 32 * 18;
      store_f16(to, group.scale);
      for (int64_t i = 0; i < count / 2; ++i)
        to[2 + i] = uint8_t(group.numbers[size_t(i)] | group.numbers[size_t(i + 16)] << 4);
    }
  }
}

bool is_in_groups(uint32_t type) {
  return type == SLUICE_U4 || type == SLUICE_Q8_0 || type == SLUICE_Q4_0;
}

void append_row(const calls::Append &call, const Side &side, int64_t t, const Place &place) {
  for (int64_t head = 0; head < call.kv_heads; ++head) {
    const std::vector<double> values = row_of(call, side, t, head, position_of(call, t, place.key));
    if (is_in_groups(call.cache_type)) {
      store_groups(call, side, place, head, values);
      continue;
    }
    const double scale = scale_of_row(call, side, place, head, values);
    for (int64_t e = 0; e < side.head_dim; ++e) {
      store(side.cache.data, call.cache_type,
            side.token_pack != 0 ? column_index(side.cache, side.token_pack, place.page, place.row, head, e)
                                 : packed_index(side.cache, side.pack, place.page, place.row, head, e),
            values[size_t(e)] / scale);
    }
  }
}

void append_row(const calls::Append &call, int64_t t, const Place &place) {
  const Side k = {.rows = call.k,
                  .cache = call.k_cache,
                  .head_dim = call.head_dim_qk,
                  .pack = call.k_pack,
                  .scale_kind = call.k_scale_kind,
                  .scale = call.k_scale,
                  .scales = call.k_scales,
                  .rotates = call.rotary_dim != 0,
                  .tail = call.k_tail,
                  .norm = call.k_norm,
                  .zeros = call.k_zeros};
  append_row(call, k, t, place);
  if (call.flags & calls::v_in_k) return;
  const Side v = {.rows = call.v,
                  .cache = call.v_cache,
                  .head_dim = call.head_dim_v,
                  .token_pack = call.v_pack,
                  .scale_kind = call.v_scale_kind,
                  .scale = call.v_scale,
                  .scales = call.v_scales,
                  .zeros = call.v_zeros};
  append_row(call, v, t, place);
}

void store_q(const calls::Append &call, int64_t t, int64_t key) {
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

PageTable table_of(const calls::Append &call) {
  return {call.page_table, (call.flags & calls::page_index_64) != 0,
          call.page_table_kind == SLUICE_PAGE_TABLE_CSR, call.page_table_stride, call.page_starts};
}

void append(const calls::Append &call) {
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
