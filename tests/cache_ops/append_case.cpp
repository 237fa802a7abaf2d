//===- append_case.cpp - an append as numbers, and the expected contents of the cache -------------------===//
#include "cache_ops/append_case.h"

#include "conformance/shared/numbers.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

namespace sluice::test {

using namespace conformance;

namespace {

const NumberFormat &format_of(uint32_t type) {
  return type == SLUICE_F16 ? f16_format : bf16_format;
}

/// The number in an element of the cache, and the element value nearest to a number, as a number.
double read_cache(uint32_t type, uint32_t bits) {
  return type == SLUICE_E4M3FNUZ ? decode_fp8(uint8_t(bits)) : decode(format_of(type), uint16_t(bits));
}
double nearest_in_cache(uint32_t type, double value) {
  return read_cache(type, type == SLUICE_E4M3FNUZ ? encode_fp8(value) : encode(format_of(type), value));
}

struct Side {
  int head_dim, pack;
  std::array<int64_t, 4> rows, cache; // strides
  size_t row_elements, cache_elements;
};

Side make_side(const AppendCase &c, int head_dim, int pack, int tokens) {
  Side side;
  side.head_dim = head_dim;
  side.pack = pack;
  const int64_t head = head_dim + c.gap, row = c.heads * head + 2 * c.gap;
  side.rows = {0, row, head, 1};
  side.row_elements = size_t((tokens - 1) * row + (c.heads - 1) * head + head_dim);
  if (pack == 0) {
    side.cache = {c.page_size * row + c.gap, row, head, 1};
    side.cache_elements = size_t(c.pages * side.cache[0]);
  } else {
    // [page][head][head_dim / pack][row][pack], the layout of vLLM's paged attention
    const int64_t packs = c.page_size * pack, head_packs = head_dim / pack * packs;
    side.cache = {c.heads * head_packs, pack, head_packs, packs};
    side.cache_elements = size_t(c.pages * side.cache[0]);
  }
  return side;
}

int64_t element_of(const std::array<int64_t, 4> &stride, int pack, int64_t page, int64_t row, int head,
                   int e) {
  return page * stride[0] + row * stride[1] + head * stride[2] +
         (pack == 0 ? e : int64_t(e / pack) * stride[3] + e % pack);
}

struct Place {
  int64_t page, row, key;
};

} // namespace

void check_append(const AppendCase &c) {
  INFO("source " << c.source << ", cache " << c.cache << ", " << c.heads << " heads of " << c.head_dim_qk
                 << " and " << c.head_dim_v << ", pages of " << c.page_size << ", pack " << c.k_pack
                 << ", table " << c.table << (c.wide_entries ? " of int64" : " of int32") << ", rotary "
                 << c.rotary_dim << " style " << c.rotary_style << ", positions " << c.positions
                 << ", scales " << c.k_scale << " " << c.v_scale << ", seed " << c.seed);
  Numbers numbers(c.seed);
  const int batch = int(c.new_rows.size());
  const int tokens = c.first_row + std::accumulate(c.new_rows.begin(), c.new_rows.end(), 0) + c.rows_behind;
  const bool is_fp8 = c.cache == SLUICE_E4M3FNUZ, has_v = c.head_dim_v != 0;
  const size_t cache_bytes = is_fp8 ? 1 : 2;
  const Side k = make_side(c, c.head_dim_qk, c.k_pack, tokens);
  const Side v = make_side(c, has_v ? c.head_dim_v : 8, 0, tokens);

  // New rows: numbers including a NaN and an infinity; gaps are NaN.
  const auto make_rows = [&](const Side &side) {
    std::vector<uint16_t> rows(side.row_elements, format_of(c.source).quiet_nan);
    for (int t = 0; t < tokens; ++t)
      for (int h = 0; h < c.heads; ++h)
        for (int e = 0; e < side.head_dim; ++e) {
          const uint32_t special = numbers.below(97);
          const double value = special == 0   ? std::nan("")
                               : special == 1 ? -std::numeric_limits<double>::infinity()
                                              : numbers.between(-6, 6);
          rows[size_t(t * side.rows[1] + h * side.rows[2] + e)] = encode(format_of(c.source), value);
        }
    return rows;
  };
  Visible<uint16_t> k_rows(make_rows(k)), v_rows(make_rows(v));
  const auto make_cache = [&](const Side &side) {
    std::vector<uint8_t> bytes(side.cache_elements * cache_bytes);
    for (uint8_t &byte : bytes)
      byte = uint8_t(numbers.next());
    return bytes;
  };
  Visible<uint8_t> k_cache(make_cache(k)), v_cache(make_cache(v));
  const std::vector<uint8_t> k_before = k_cache.copy(), v_before = v_cache.copy();

  // The place of each row. Slots and pages are drawn without repetition.
  std::vector<std::optional<Place>> places(size_t(tokens), std::nullopt);
  std::vector<int64_t> page_order(size_t(c.pages), 0);
  std::iota(page_order.begin(), page_order.end(), 0);
  for (size_t i = page_order.size(); i > 1; --i)
    std::swap(page_order[i - 1], page_order[numbers.below(uint32_t(i))]);
  std::vector<int64_t> slots;
  std::vector<int32_t> starts = {c.first_row}, lengths, page_starts = {0}, narrow;
  std::vector<int64_t> wide;
  int64_t table_stride = 0;
  const bool has_slots = c.table == SLUICE_PAGE_TABLE_NONE;
  if (has_slots) {
    REQUIRE(tokens <= c.pages * c.page_size);
    for (int t = 0; t < tokens; ++t) {
      // Every fourth row is skipped; one of them has the smallest slot that int64_t holds.
      if (t % 4 == 2) {
        slots.push_back(t == 2 ? std::numeric_limits<int64_t>::min() : -1 - t);
        continue;
      }
      const int64_t page = page_order[size_t(t / c.page_size)], row = t % c.page_size;
      slots.push_back(page * c.page_size + row);
      places[size_t(t)] = Place{page, row, 0};
    }
  } else {
    size_t next_page = 0;
    int64_t longest = 0;
    std::vector<std::vector<int64_t>> tables;
    for (int b = 0; b < batch; ++b) {
      const int keys = c.old_keys[size_t(b)] + c.new_rows[size_t(b)];
      lengths.push_back(keys);
      starts.push_back(starts.back() + c.new_rows[size_t(b)]);
      std::vector<int64_t> table;
      for (int n = 0; n * c.page_size < keys; ++n) {
        REQUIRE(next_page < page_order.size());
        table.push_back(page_order[next_page++]);
      }
      for (int i = 0; i < c.new_rows[size_t(b)]; ++i) {
        const int key = c.old_keys[size_t(b)] + i;
        places[size_t(starts[size_t(b)] + i)] =
            Place{table[size_t(key / c.page_size)], key % c.page_size, key};
      }
      longest = std::max<int64_t>(longest, int64_t(table.size()));
      page_starts.push_back(page_starts.back() + int32_t(table.size()));
      tables.push_back(std::move(table));
    }
    // A block table has unused entries, whose pages do not exist; its last row ends with the last entry that
    // is needed.
    if (c.table == SLUICE_PAGE_TABLE_BLOCK) table_stride = longest + 2;
    for (size_t b = 0; b < tables.size(); ++b) {
      if (c.table == SLUICE_PAGE_TABLE_BLOCK) wide.resize(b * size_t(table_stride), 0x7fffffff);
      wide.insert(wide.end(), tables[b].begin(), tables[b].end());
    }
    narrow.assign(wide.begin(), wide.end());
  }
  Visible<int64_t> slots_seen(slots), wide_seen(c.wide_entries ? wide : std::vector<int64_t>());
  Visible<int32_t> narrow_seen(c.wide_entries ? std::vector<int32_t>() : narrow);
  Visible<int32_t> starts_seen(starts), lengths_seen(lengths), page_starts_seen(page_starts);

  // Scales and rotations.
  const auto make_scales = [&](uint32_t kind) {
    std::vector<float> scales(kind == SLUICE_SCALE_NONE         ? 0
                              : kind == SLUICE_SCALE_PER_TENSOR ? 1
                                                                : size_t(c.heads));
    for (float &scale : scales)
      scale = float(numbers.between(0.02, 0.1));
    return scales;
  };
  Visible<float> k_scales(make_scales(c.k_scale)), v_scales(make_scales(c.v_scale));
  constexpr int most_positions = 64;
  const int64_t rotary_stride = c.rotary_dim + 3;
  std::vector<float> angles(
      size_t(c.rotary_dim == 0 ? 0 : (most_positions - 1) * rotary_stride + c.rotary_dim));
  for (float &number : angles)
    number = float(numbers.between(-1, 1));
  Visible<float> rotary(angles);
  std::vector<int32_t> drawn;
  for (int t = 0; c.positions && t < tokens; ++t)
    drawn.push_back(int32_t(numbers.below(most_positions)));
  Visible<int32_t> positions(drawn);

  sluice_append call;
  sluice_append_init(&call, sizeof call);
  call.flags = (c.wide_entries ? uint32_t(SLUICE_PAGE_INDEX_64) : 0) | (has_v ? 0 : uint32_t(SLUICE_V_IN_K));
  call.source_type = c.source;
  call.cache_type = c.cache;
  call.kv_heads = c.heads;
  call.head_dim_qk = c.head_dim_qk;
  call.head_dim_v = c.head_dim_v;
  call.page_size = c.page_size;
  call.page_table_kind = c.table;
  call.k_pack = c.k_pack;
  call.k_scale_kind = c.k_scale;
  call.v_scale_kind = c.v_scale;
  call.tokens = tokens;
  call.rotary_dim = c.rotary_dim;
  call.rotary_style = c.rotary_style;
  const auto tensor = [](void *data, const std::array<int64_t, 4> &stride) {
    return sluice_tensor{data, {stride[0], stride[1], stride[2], stride[3]}};
  };
  call.k = tensor(k_rows.data(), k.rows);
  call.k_cache = tensor(k_cache.data(), k.cache);
  if (has_v) {
    call.v = tensor(v_rows.data(), v.rows);
    call.v_cache = tensor(v_cache.data(), v.cache);
  }
  if (has_slots) {
    call.slots = slots_seen.data();
  } else {
    call.batch = batch;
    call.starts = starts_seen.data();
    call.kv_lengths = lengths_seen.data();
    call.page_table = c.wide_entries ? static_cast<void *>(wide_seen.data()) : narrow_seen.data();
    call.page_table_stride = table_stride;
    if (c.table == SLUICE_PAGE_TABLE_CSR) call.page_starts = page_starts_seen.data();
  }
  if (c.k_scale != SLUICE_SCALE_NONE) call.k_scale = k_scales.data();
  if (c.v_scale != SLUICE_SCALE_NONE) call.v_scale = v_scales.data();
  if (c.rotary_dim != 0) {
    call.rotary = rotary.data();
    call.rotary_stride = rotary_stride;
    if (c.positions) call.positions = positions.data();
  }
  run_on_device(call, sluice_kv_append);

  // The oracle.
  const auto check = [&](const char *name, const Side &side, const Visible<uint16_t> &rows,
                         const Visible<uint8_t> &cache, const std::vector<uint8_t> &before,
                         const Visible<float> &scales, int rotary_dim) {
    std::vector<uint8_t> allowed(before.size(), 0);
    int wrong = 0;
    for (int t = 0; t < tokens; ++t) {
      if (!places[size_t(t)]) continue;
      const Place place = *places[size_t(t)];
      for (int h = 0; h < c.heads; ++h)
        for (int e = 0; e < side.head_dim; ++e) {
          const auto source = [&](int element) {
            return decode(format_of(c.source), rows[size_t(t * side.rows[1] + h * side.rows[2] + element)]);
          };
          double value = source(e), margin = 0;
          if (e < rotary_dim) {
            const int half = rotary_dim / 2;
            const bool is_halves = c.rotary_style == SLUICE_ROTARY_HALVES;
            const int pair = is_halves ? e % half : e / 2;
            const int x = is_halves ? pair : 2 * pair, y = is_halves ? pair + half : 2 * pair + 1;
            const int64_t p = c.positions ? drawn[size_t(t)] : place.key;
            const double cosine = angles[size_t(p * rotary_stride + pair)];
            const double sine = angles[size_t(p * rotary_stride + half + pair)];
            value = e == x ? source(x) * cosine - source(y) * sine : source(y) * cosine + source(x) * sine;
            margin = (std::fabs(source(x)) + std::fabs(source(y))) * std::ldexp(1, -23);
          }
          if (scales.size() != 0) {
            const double scale = scales[scales.size() == 1 ? 0 : size_t(h)];
            value /= scale;
            margin /= scale;
          }
          const auto at = size_t(element_of(side.cache, side.pack, place.page, place.row, h, e));
          uint32_t found = 0;
          std::memcpy(&found, &cache[at * cache_bytes], cache_bytes);
          for (size_t byte = 0; byte < cache_bytes; ++byte)
            allowed[at * cache_bytes + byte] = 1;
          const double number = read_cache(c.cache, found);
          bool good;
          if (margin == 0 && !is_fp8) // a copy of the bits
            good = found == rows[size_t(t * side.rows[1] + h * side.rows[2] + e)];
          else if (std::isnan(value))
            good = std::isnan(number);
          else if (!std::isfinite(margin))
            good = number == nearest_in_cache(c.cache, value);
          else // F32 arithmetic, then one rounding: to the number itself or, near the middle, to its
               // neighbour
            good = number >= nearest_in_cache(c.cache, value - margin) &&
                   number <= nearest_in_cache(c.cache, value + margin);
          if (!good && ++wrong <= 5)
            UNSCOPED_INFO(name << " token " << t << " head " << h << " element " << e << ": " << value
                               << " became " << found);
        }
    }
    CHECK(wrong == 0);
    int touched = 0;
    for (size_t i = 0; i < before.size(); ++i)
      touched += !allowed[i] && cache[i] != before[i];
    INFO(name << "'s cache outside the slots");
    CHECK(touched == 0);
  };
  check("K", k, k_rows, k_cache, k_before, k_scales, c.rotary_dim);
  if (has_v)
    check("V", v, v_rows, v_cache, v_before, v_scales, 0);
  else
    CHECK(v_cache.copy() == v_before);
}

} // namespace sluice::test
