//===- append_case.cpp - the inputs of an append, and the caches it must leave --------------------------===//

#include "append_case.h"

#include "call.h"
#include "case_random.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

namespace sluice::conformance {

namespace {

// Sequences with and without new rows and keys, some at the ends of pages.
constexpr std::array usual_rows = {0, 3, 1, 0, 7, 2, 18}, old_keys = {4, 2, 0, 9, 13, 16, 31};
// Rows before the first sequence and after the last belong to no sequence.
constexpr int rows_in_front = 2, rows_behind = 3;
constexpr int most_positions = 64;
constexpr int unowned_pages = 2;
constexpr int64_t gap = 8; // elements; a multiple of what strides must be a multiple of

std::vector<int> new_rows_of(const AppendCase &c) {
  std::vector<int> rows(usual_rows.begin(), usual_rows.end());
  rows.back() += c.more_rows;
  return rows;
}

/// In a buffer, rows of new tokens or of a cache; [outer][row][head][element].
Placed place(const Extents &e, bool apart, bool is_cache) {
  const int64_t head = e.d + (apart ? gap : 0), row = e.heads * head + (apart ? 2 * gap : 0);
  const int64_t outer = e.rows * row + (apart ? gap : 0);
  return {{.stride = {is_cache ? outer : 0, row, head, 1}}, e.outer * outer};
}

/// One side, K or V.
struct Side {
  const std::vector<double> &rows, &scale;
  const Placement &cache;
  int head_size;
  bool is_rotated;
};

double quiet_nan() {
  return std::numeric_limits<double>::quiet_NaN();
}

void draw_rows(const AppendCase &c, AppendInputs &in) {
  Random random = random_of(c), special = random_of(c, " not a number");
  const auto draw = [&](int head_size) {
    std::vector<double> values(size_t(in.tokens) * size_t(c.heads) * size_t(head_size));
    for (double &value : values) {
      value = as_stored(c.source, 2 * random.normal());
      const size_t what = special.below(97);
      // Beyond the largest FP8 number.
      if (what > 90) value = as_stored(c.source, 150 * value);
      if (!c.not_finite) continue;
      if (what == 0) value = quiet_nan();
      if (what == 1) value = -std::numeric_limits<double>::infinity();
    }
    return values;
  };
  in.k = draw(c.head_size.qk);
  if (!c.v_in_k) in.v = draw(c.head_size.v);
}

/// Draws pages and slots without repetition.
void find_slots(const AppendCase &c, AppendInputs &in) {
  const std::vector<int> new_rows = new_rows_of(c);
  const auto pages_for = [&](int keys) { return (keys + c.page_size - 1) / c.page_size; };
  int needed = 0;
  if (c.finding == Finding::slots)
    needed = pages_for(in.tokens);
  else
    for (size_t b = 0; b < new_rows.size(); ++b)
      needed += pages_for(old_keys[b] + new_rows[b]);
  in.pages_in_all = needed + unowned_pages;
  const std::vector<int64_t> order = shuffled(in.pages_in_all, random_of(c, " pages"));
  in.slots.resize(size_t(in.tokens));
  in.positions.resize(size_t(in.tokens));
  if (c.finding == Finding::slots) {
    for (int t = 0; t < in.tokens; ++t)
      if (t % 4 != 2) in.slots[size_t(t)] = Slot{order[size_t(t / c.page_size)], (t * 7 + 3) % c.page_size};
    // A step of 7 visits each row of a page once, unless 7 divides its size.
    if (c.page_size % 7 == 0) throw std::logic_error("pages whose size 7 divides have no such slots");
  } else {
    in.starts = {rows_in_front};
    size_t next = 0;
    for (size_t b = 0; b < new_rows.size(); ++b) {
      const int keys = old_keys[b] + new_rows[b];
      std::vector<int64_t> &pages = in.pages.emplace_back();
      for (int n = 0; n < pages_for(keys); ++n)
        pages.push_back(order[next++]);
      for (int i = 0; i < new_rows[b]; ++i) {
        const int key = old_keys[b] + i;
        const size_t t = size_t(in.starts.back()) + size_t(i);
        in.slots[t] = Slot{pages[size_t(key / c.page_size)], key % c.page_size};
        in.positions[t] = key;
      }
      in.lengths.push_back(keys);
      in.starts.push_back(in.starts.back() + new_rows[b]);
    }
  }
  Random random = random_of(c, " positions");
  if (c.positions)
    for (int &position : in.positions)
      position = int(random.below(most_positions));
}

} // namespace

AppendInputs make_inputs(const AppendCase &c) {
  AppendInputs in;
  const std::vector<int> new_rows = new_rows_of(c);
  in.tokens = rows_in_front + std::accumulate(new_rows.begin(), new_rows.end(), 0) + rows_behind;
  draw_rows(c, in);
  find_slots(c, in);
  const auto scales = [&](Scale scale, const char *what) {
    Random random = random_of(c, what);
    std::vector<double> values(size_t(c.heads), 1);
    for (size_t h = 0; scale != Scale::none && h < values.size(); ++h)
      values[h] = scale == Scale::head || h == 0 ? float(0.02 + 0.1 * random.uniform()) : values.front();
    return values;
  };
  in.k_scale = scales(c.k_scale, " k_scale");
  in.v_scale = scales(c.v_scale, " v_scale");
  Random random = random_of(c, " rotary");
  in.rotary.resize(size_t(most_positions) * size_t(c.rotary_dim));
  for (double &number : in.rotary)
    number = float(2 * random.uniform() - 1);
  return in;
}

namespace {

class Builder {
public:
  Builder(const AppendCase &of, const AppendInputs &inputs) : c(of), in(inputs) {}

  AppendMemory build() {
    memory.k = add_rows(in.k, c.head_size.qk);
    memory.k_cache = add_cache(c.head_size.qk, c.k_pack, " K");
    if (!c.v_in_k) {
      memory.v = add_rows(in.v, c.head_size.v);
      memory.v_cache = add_cache(c.head_size.v, 0, " V");
    }
    add_places();
    if (c.k_scale != Scale::none) memory.k_scale = add_factors(c.k_scale, in.k_scale);
    if (c.v_scale != Scale::none) memory.v_scale = add_factors(c.v_scale, in.v_scale);
    if (c.rotation != Rotation::none) {
      memory.rotary = add_array<float>(in.rotary);
      if (c.positions) memory.positions = add_array<int32_t>(in.positions);
    }
    return std::move(memory);
  }

private:
  template <typename Number, typename Values> int add_array(const Values &values) {
    return conformance::add_array<Number>(memory.buffers, values);
  }
  int add_factors(Scale scale, std::vector<double> values) {
    if (scale == Scale::tensor) values.resize(1);
    return add_array<float>(values);
  }

  Placement add_rows(const std::vector<double> &values, int head_size) {
    Placed placed = place({1, in.tokens, c.heads, head_size}, c.apart, false);
    std::vector<std::byte> &buffer =
        memory.buffers.emplace_back(size_t(placed.buffer_elements) * bytes_of(c.source));
    for (int64_t i = 0; i < placed.buffer_elements; ++i)
      store(buffer, c.source, i, quiet_nan());
    size_t i = 0;
    for (int t = 0; t < in.tokens; ++t)
      for (int h = 0; h < c.heads; ++h)
        for (int e = 0; e < head_size; ++e)
          store(buffer, c.source, placed.placement.at(0, t, h, e), values[i++]);
    placed.placement.buffer = int(memory.buffers.size()) - 1;
    return placed.placement;
  }

  /// Random bytes: bytes that are not written must stay.
  Placement add_cache(int head_size, int pack, const char *what) {
    const Extents extents{in.pages_in_all, c.page_size, c.heads, head_size};
    Placed placed = pack == 0 ? place(extents, c.apart, true)
                              : place_x_packed(extents, pack, c.apart ? Layout::padded : Layout::bshd);
    std::vector<std::byte> &buffer =
        memory.buffers.emplace_back(size_t(placed.buffer_elements) * bytes_of(c.cache));
    Random random = random_of(c, what);
    for (std::byte &byte : buffer)
      byte = std::byte(random.below(256));
    placed.placement.buffer = int(memory.buffers.size()) - 1;
    return placed.placement;
  }

  void add_places() {
    if (c.finding == Finding::slots) {
      std::vector<int64_t> slots;
      for (size_t t = 0; t < in.slots.size(); ++t)
        slots.push_back(in.slots[t] ? in.slots[t]->page * c.page_size + in.slots[t]->row
                        : t == 2    ? std::numeric_limits<int64_t>::min()
                                    : -1 - int64_t(t));
      memory.slots = add_array<int64_t>(slots);
      return;
    }
    // Entries that no sequence needs name pages that do not exist; the last sequence's entries end the array.
    size_t longest = 0;
    for (const std::vector<int64_t> &pages : in.pages)
      longest = std::max(longest, pages.size());
    if (c.finding == Finding::block) memory.table_stride = int64_t(longest) + 2;
    std::vector<int64_t> table, page_starts = {0};
    for (size_t b = 0; b < in.pages.size(); ++b) {
      if (c.finding == Finding::block) table.resize(b * size_t(memory.table_stride), 0x7fffffff);
      table.insert(table.end(), in.pages[b].begin(), in.pages[b].end());
      page_starts.push_back(int64_t(table.size()));
    }
    memory.page_table = c.wide ? add_array<int64_t>(table) : add_array<int32_t>(table);
    if (c.finding == Finding::csr) memory.page_starts = add_array<int32_t>(page_starts);
    memory.starts = add_array<int32_t>(in.starts);
    memory.kv_lengths = add_array<int32_t>(in.lengths);
  }

  const AppendCase &c;
  const AppendInputs &in;
  AppendMemory memory;
};

} // namespace

AppendMemory make_memory(const AppendCase &c, const AppendInputs &in) {
  return Builder(c, in).build();
}

sluice_append make_call(const AppendCase &c, const AppendInputs &in, const AppendMemory &memory,
                        const std::vector<void *> &bases) {
  const auto tensor = [&](const Placement &p) {
    return sluice_tensor{.data = bases[size_t(p.buffer)],
                         .stride = {p.stride[0], p.stride[1], p.stride[2], p.stride[3]}};
  };
  const auto array = [&]<typename Number>(int buffer, const Number *&to) {
    if (buffer >= 0) to = static_cast<const Number *>(bases[size_t(buffer)]);
  };
  sluice_append call;
  sluice_append_init(&call, sizeof call);
  call.flags = (c.wide ? uint32_t(SLUICE_PAGE_INDEX_64) : 0) | (c.v_in_k ? uint32_t(SLUICE_V_IN_K) : 0);
  call.source_type = c_type(c.source);
  call.cache_type = c_type(c.cache);
  call.kv_heads = c.heads;
  call.head_dim_qk = c.head_size.qk;
  call.head_dim_v = c.v_in_k ? 0 : c.head_size.v;
  call.page_size = c.page_size;
  constexpr std::array<uint32_t, 3> tables = {SLUICE_PAGE_TABLE_NONE, SLUICE_PAGE_TABLE_BLOCK,
                                              SLUICE_PAGE_TABLE_CSR};
  call.page_table_kind = tables[size_t(c.finding)];
  call.k_pack = c.k_pack;
  call.k_scale_kind = scale_kind(c.k_scale);
  call.v_scale_kind = scale_kind(c.v_scale);
  call.tokens = in.tokens;
  call.batch = int32_t(in.lengths.size());
  call.k = tensor(memory.k);
  call.k_cache = tensor(memory.k_cache);
  if (!c.v_in_k) {
    call.v = tensor(memory.v);
    call.v_cache = tensor(memory.v_cache);
  }
  array(memory.slots, call.slots);
  array(memory.starts, call.starts);
  array(memory.kv_lengths, call.kv_lengths);
  if (memory.page_table >= 0) call.page_table = bases[size_t(memory.page_table)];
  call.page_table_stride = memory.table_stride;
  array(memory.page_starts, call.page_starts);
  array(memory.k_scale, call.k_scale);
  array(memory.v_scale, call.v_scale);
  array(memory.rotary, call.rotary);
  array(memory.positions, call.positions);
  if (c.rotation != Rotation::none) {
    call.rotary_dim = c.rotary_dim;
    call.rotary_style = c.rotation == Rotation::halves ? SLUICE_ROTARY_HALVES : SLUICE_ROTARY_PAIRS;
    call.rotary_stride = c.rotary_dim;
  }
  return call;
}

std::vector<StoredElement> compute_expected(const AppendCase &c, const AppendInputs &in,
                                            const AppendMemory &memory) {
  std::vector<StoredElement> expected;
  const auto add = [&](const Side &side, int t, int h, int e) {
    const Slot slot = *in.slots[size_t(t)];
    const double *const row = &side.rows[(size_t(t) * size_t(c.heads) + size_t(h)) * size_t(side.head_size)];
    double value = row[e], margin = 0;
    if (side.is_rotated && e < c.rotary_dim) {
      const int half = c.rotary_dim / 2;
      const bool halves = c.rotation == Rotation::halves;
      const int pair = halves ? e % half : e / 2, x = halves ? pair : 2 * pair,
                y = halves ? pair + half : x + 1;
      const double *const numbers = &in.rotary[size_t(in.positions[size_t(t)]) * size_t(c.rotary_dim)];
      const double cosine = numbers[pair], sine = numbers[pair + half];
      value = e == x ? row[x] * cosine - row[y] * sine : row[y] * cosine + row[x] * sine;
      // Two products and their sum in F32, each off by at most half a last place, of numbers up to 1.
      margin = 0x1p-23 * (std::fabs(row[x]) + std::fabs(row[y]));
    }
    const double scale = side.scale[size_t(h)];
    expected.push_back(
        {side.cache.buffer, side.cache.at(slot.page, slot.row, h, e), value / scale, margin / scale});
  };
  const Side k{in.k, in.k_scale, memory.k_cache, c.head_size.qk, c.rotation != Rotation::none};
  const Side v{in.v, in.v_scale, memory.v_cache, c.head_size.v, false};
  for (int t = 0; t < in.tokens; ++t) {
    if (!in.slots[size_t(t)]) continue;
    for (int h = 0; h < c.heads; ++h) {
      for (int e = 0; e < k.head_size; ++e)
        add(k, t, h, e);
      for (int e = 0; !c.v_in_k && e < v.head_size; ++e)
        add(v, t, h, e);
    }
  }
  return expected;
}

Comparison compare(const AppendCase &c, const std::vector<StoredElement> &expected,
                   const AppendMemory &before, const AppendMemory &after) {
  Comparison result;
  std::vector<std::vector<bool>> allowed;
  for (const std::vector<std::byte> &buffer : before.buffers)
    allowed.emplace_back(buffer.size());
  const size_t bytes = bytes_of(c.cache);
  for (const StoredElement &element : expected) {
    for (size_t i = 0; i < bytes; ++i)
      allowed[size_t(element.buffer)][size_t(element.at) * bytes + i] = true;
    const double got = load(c.cache, after.buffers[size_t(element.buffer)].data(), element.at);
    const double ratio = rounded_error_ratio(c.cache, got, element.value, element.margin);
    result.o_ratio = std::max(result.o_ratio, ratio);
    if (ratio > 1)
      result.note(std::string(element.buffer == before.k_cache.buffer ? "K" : "V") + "'s cache, element " +
                  std::to_string(element.at) + ": got " + std::to_string(got) + ", expected " +
                  std::to_string(element.value));
  }
  for (size_t buffer = 0; buffer < before.buffers.size(); ++buffer)
    for (size_t i = 0; i < before.buffers[buffer].size(); ++i)
      if (!allowed[buffer][i] && before.buffers[buffer][i] != after.buffers[buffer][i])
        result.note("byte " + std::to_string(i) + " of " +
                    (int(buffer) == before.k_cache.buffer   ? "K's cache"
                     : int(buffer) == before.v_cache.buffer ? "V's cache"
                                                            : "an input") +
                    " was overwritten, but no new row belongs there");
  return result;
}

} // namespace sluice::conformance
