//===- append_case.cpp - the inputs of an append, and the caches it must leave --------------------------===//

#include "conformance/cache_ops/append_case.h"

#include "conformance/cache_ops/append_groups.h"
#include "conformance/shared/c_types.h"
#include "conformance/shared/case_random.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>

namespace sluice::conformance {

namespace {

// Sequences with and without new rows and keys, some at the ends of pages.
constexpr std::array usual_rows = {0, 3, 1, 0, 7, 2, 18}, old_keys = {4, 2, 0, 9, 13, 16, 31};
// Rows before the first sequence and after the last belong to no sequence.
constexpr int rows_in_front = 2, rows_behind = 3;
constexpr int most_positions = 64;
constexpr int unowned_pages = 2;
/// Tiny rows would be nothing beside another one.
double norm_epsilon(const AppendCase &c) {
  return c.power == 0 ? 1e-5 : 0;
}
/// Elements between heads and rows: a multiple of what strides must be a multiple of.
int64_t gap_of(Element element) {
  return is_in_groups(element) ? 32 : 8;
}

std::vector<int> new_rows_of(const AppendCase &c) {
  std::vector<int> rows(usual_rows.begin(), usual_rows.end());
  rows.back() += c.more_rows;
  return rows;
}

/// In a buffer, rows of new tokens or of a cache; [outer][row][head][element].
Placed place(const Extents &e, bool apart, bool is_cache, Element element) {
  const int64_t gap = gap_of(element);
  const int64_t head = e.d + (apart ? gap : 0), row = e.heads * head + (apart ? 2 * gap : 0);
  const int64_t outer = e.rows * row + (apart ? gap : 0);
  return {{.stride = {is_cache ? outer : 0, row, head, 1}}, e.outer * outer};
}

/// K, V or Q.
struct Side {
  Scale scale;
  const std::vector<double> &scales;
  const Placement &scales_out, &zeros_out; // of scales that the append computes
  const std::vector<double> &rows, &norm;
  const Placement &out;
  Element type; // of `out`
  int heads, head_size;
  bool is_rotated;
};

double quiet_nan() {
  return std::numeric_limits<double>::quiet_NaN();
}

/// Of V by columns: 16 bytes, as in aiter's caches.
int rows_of_pack(const AppendCase &c) {
  return int(16 / bytes_of(c.cache));
}

Element norm_type(const AppendCase &c) {
  return c.norm_is_f32 ? Element::f32 : c.source;
}

/// Every head gets the tail of the first.
void repeat_tail(const AppendCase &c, int heads, std::vector<double> &rows) {
  const size_t row = size_t(c.head_size.qk), body = row - size_t(c.tail_dim);
  for (size_t first = 0; first < rows.size(); first += size_t(heads) * row)
    for (int h = 1; h < heads; ++h)
      std::copy_n(&rows[first + body], c.tail_dim, &rows[first + size_t(h) * row + body]);
}

/// Numbers of which a group has several of the same size, with either sign, and rows of one number.
double few(double value, size_t row) {
  if (row % 5 == 0) return 0;
  if (row % 5 == 1) return row % 2 == 0 ? 3.25 : -1000;
  return std::nearbyint(2 * value) / 2;
}

void draw_rows(const AppendCase &c, AppendInputs &in) {
  Random random = random_of(c), special = random_of(c, " not a number");
  const auto draw = [&](int heads, int head_size) {
    std::vector<double> values(size_t(in.tokens) * size_t(heads) * size_t(head_size));
    for (double &value : values) {
      value = as_stored(c.source, 2 * random.normal());
      const size_t what = special.below(97);
      if (c.few_values) value = few(value, size_t(&value - values.data()) / size_t(head_size));
      // Beyond the largest FP8 number, at least when it is divided by a scale.
      if (what > 90 && !c.few_values)
        value = as_stored(c.source, (c.cache == Element::bf8 ? 8000 : 150) * value);
      value = as_stored(c.source, std::ldexp(value, c.power));
      if (!c.not_finite) continue;
      if (what == 0) value = quiet_nan();
      if (what == 1) value = -std::numeric_limits<double>::infinity();
    }
    return values;
  };
  in.k = draw(c.heads, c.head_size.qk);
  if (!c.v_in_k) in.v = draw(c.heads, c.head_size.v);
  in.q = draw(c.q_heads, c.head_size.qk);
  if (c.one_tail) {
    repeat_tail(c, c.heads, in.k);
    repeat_tail(c, c.q_heads, in.q);
  }
  const auto draw_weights = [&] {
    std::vector<double> weights(size_t(c.head_size.qk - c.tail_dim));
    for (double &weight : weights)
      weight = as_stored(norm_type(c), 0.5 + random.uniform());
    return weights;
  };
  if (c.k_norm) in.k_norm = draw_weights();
  if (c.q_norm) in.q_norm = draw_weights();
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
    const int64_t pages = scale == Scale::page ? in.pages_in_all : 1;
    std::vector<double> values(size_t(pages * c.heads), 1);
    for (size_t h = 0; scale != Scale::none && scale != Scale::token && h < values.size(); ++h)
      values[h] = scale != Scale::tensor || h == 0 ? float(std::ldexp(0.02 + 0.1 * random.uniform(), c.power))
                                                   : values.front();
    return values;
  };
  in.k_scale = scales(c.k_scale, " k_scale");
  in.v_scale = scales(c.v_scale, " v_scale");
  Random random = random_of(c, " rotary");
  in.rotary.resize(size_t(most_positions) * size_t(c.rotary_dim));
  for (double &number : in.rotary)
    number = as_stored(c.rotary_type, 2 * random.uniform() - 1);
  return in;
}

namespace {

class Builder {
public:
  Builder(const AppendCase &of, const AppendInputs &inputs) : c(of), in(inputs) {}

  AppendMemory build() {
    const int body = c.head_size.qk - c.tail_dim;
    memory.k = add_rows(in.k, c.heads, c.head_size.qk, {0, body});
    if (c.tail_dim != 0) memory.k_tail = add_tail(in.k, c.heads);
    memory.k_cache = add_cache(c.head_size.qk, c.k_pack, " K");
    if (!c.v_in_k) {
      memory.v = add_rows(in.v, c.heads, c.head_size.v, {0, c.head_size.v});
      memory.v_cache = c.v_columns == Columns::none ? add_cache(c.head_size.v, 0, " V") : add_columns();
    }
    if (c.q_heads != 0) {
      memory.q = add_rows(in.q, c.q_heads, c.head_size.qk, {0, c.q_is_whole ? c.head_size.qk : body});
      if (c.tail_dim != 0 && !c.q_is_whole) memory.q_tail = add_tail(in.q, c.q_heads);
      memory.q_out = c.q_in_place ? memory.q : add_q_out();
    }
    if (c.k_norm) memory.k_norm = add_elements(norm_type(c), in.k_norm);
    if (c.q_norm) memory.q_norm = add_elements(norm_type(c), in.q_norm);
    add_places();
    if (has_factors(c.k_scale)) memory.k_scale = add_factors(c.k_scale, in.k_scale);
    if (has_factors(c.v_scale)) memory.v_scale = add_factors(c.v_scale, in.v_scale);
    memory.k_scales = add_scales(c.k_scale, in.k_scale, " scales of K");
    memory.v_scales = add_scales(c.v_scale, in.v_scale, " scales of V");
    if (c.scale_group != 0) {
      add_group_arrays(c.head_size.qk, memory.k_scales, memory.k_zeros);
      if (!c.v_in_k) add_group_arrays(c.head_size.v, memory.v_scales, memory.v_zeros);
    }
    if (c.rotation != Rotation::none) {
      add_rotary();
      if (c.positions) memory.positions = add_array<int32_t>(in.positions);
    }
    return std::move(memory);
  }

private:
  template <typename Number, typename Values> int add_array(const Values &values) {
    return conformance::add_array<Number>(memory.buffers, values);
  }
  static bool has_factors(Scale scale) { return scale == Scale::tensor || scale == Scale::head; }
  /// Per page the rows have no step: only the first one's scales exist.
  Placement add_scales(Scale scale, const std::vector<double> &values, const char *what) {
    if (scale != Scale::token && scale != Scale::page) return {-1};
    Placed placed = place({in.pages_in_all, scale == Scale::page ? 1 : c.page_size, c.heads, 1}, c.apart,
                          true, Element::f32);
    placed.placement.buffer = add_random_bytes(size_t(placed.buffer_elements) * sizeof(float), what);
    if (scale == Scale::token) return placed.placement;
    for (size_t i = 0; i < values.size(); ++i)
      store(memory.buffers.back(), Element::f32,
            placed.placement.at(int64_t(i) / c.heads, 0, int64_t(i) % c.heads, 0), values[i]);
    placed.placement.stride[1] = placed.placement.stride[3] = 0;
    return placed.placement;
  }
  /// F16 for each group of each row.
  void add_group_arrays(int head_size, Placement &scales, Placement &zeros) {
    Placed placed = place({in.pages_in_all, c.page_size, c.heads, head_size / c.scale_group}, c.apart, true,
                          Element::f16);
    const size_t bytes = size_t(placed.buffer_elements) * bytes_of(Element::f16);
    placed.placement.buffer = add_random_bytes(bytes, " scales of groups");
    scales = placed.placement;
    if (!c.zeros) return;
    placed.placement.buffer = add_random_bytes(bytes, " zeros of groups");
    zeros = placed.placement;
  }
  int add_factors(Scale scale, std::vector<double> values) {
    if (scale == Scale::tensor) values.resize(1);
    return add_array<float>(values);
  }

  int add_elements(Element type, const std::vector<double> &values) {
    std::vector<std::byte> &buffer = memory.buffers.emplace_back(values.size() * bytes_of(type));
    for (size_t i = 0; i < values.size(); ++i)
      store(buffer, type, int64_t(i), values[i]);
    return int(memory.buffers.size()) - 1;
  }

  void add_rotary() {
    if (!c.sines_apart) {
      memory.rotary = add_elements(c.rotary_type, in.rotary);
      return;
    }
    // The cosines' rows have gaps of NaN where the sines would be; those of the sines end with the array.
    const size_t row = size_t(c.rotary_dim), half = row / 2;
    std::vector<double> cosines = in.rotary, sines;
    for (size_t at = 0; at < in.rotary.size(); ++at)
      if (at % row >= half) {
        cosines[at] = quiet_nan();
        sines.push_back(in.rotary[at]);
        if (at % row + 1 == row && at + 1 < in.rotary.size()) sines.insert(sines.end(), half, quiet_nan());
      }
    cosines.resize(cosines.size() - half);
    memory.rotary = add_elements(c.rotary_type, cosines);
    memory.rotary_sin = add_elements(c.rotary_type, sines);
  }

  /// Elements [first, end) of rows.
  struct Part {
    int first, end;
  };

  /// With one tail, the tensor has a single head.
  Placement add_tail(const std::vector<double> &values, int heads) {
    Placement tail = add_rows(values, heads, c.head_size.qk, {c.head_size.qk - c.tail_dim, c.head_size.qk},
                              c.one_tail ? 1 : heads);
    if (c.one_tail) tail.stride[2] = 0;
    return tail;
  }

  Placement add_q_out() {
    Placed placed = place({1, in.tokens, c.q_heads, c.head_size.qk}, c.apart, false, c.source);
    placed.placement.buffer = add_random_bytes(size_t(placed.buffer_elements) * bytes_of(c.source), " Q");
    return placed.placement;
  }

  int add_random_bytes(size_t bytes, const char *what) {
    std::vector<std::byte> &buffer = memory.buffers.emplace_back(bytes);
    Random random = random_of(c, what);
    for (std::byte &byte : buffer)
      byte = std::byte(random.below(256));
    return int(memory.buffers.size()) - 1;
  }

  Placement add_rows(const std::vector<double> &values, int heads, int head_size, Part part) {
    return add_rows(values, heads, head_size, part, heads);
  }
  Placement add_rows(const std::vector<double> &values, int heads, int head_size, Part part,
                     int stored_heads) {
    Placed placed = place({1, in.tokens, stored_heads, part.end - part.first}, c.apart, false, c.source);
    std::vector<std::byte> &buffer =
        memory.buffers.emplace_back(size_t(placed.buffer_elements) * bytes_of(c.source));
    for (int64_t i = 0; i < placed.buffer_elements; ++i)
      store(buffer, c.source, i, quiet_nan());
    for (int t = 0; t < in.tokens; ++t)
      for (int h = 0; h < stored_heads; ++h)
        for (int e = part.first; e < part.end; ++e)
          store(buffer, c.source, placed.placement.at(0, t, h, e - part.first),
                values[(size_t(t) * size_t(heads) + size_t(h)) * size_t(head_size) + size_t(e)]);
    placed.placement.buffer = int(memory.buffers.size()) - 1;
    return placed.placement;
  }

  /// Random bytes: bytes that are not written must stay.
  Placement add_cache(int head_size, int pack, const char *what) {
    const Extents extents{in.pages_in_all, c.page_size, c.heads, head_size};
    Placed placed = pack == 0 ? place(extents, c.apart, true, c.cache)
                              : place_x_packed(extents, pack, c.apart ? Layout::padded : Layout::bshd);
    placed.placement.buffer = add_random_bytes(cache_bytes(c.cache, placed.buffer_elements), what);
    return placed.placement;
  }

  Placement add_columns() {
    const Extents extents{in.pages_in_all, c.page_size, c.heads, c.head_size.v};
    Placed placed = place_by_columns(extents, c.v_columns == Columns::packs ? rows_of_pack(c) : 0,
                                     c.apart ? Layout::padded : Layout::bshd);
    placed.placement.offset = 0; // calls begin where their buffers do
    placed.placement.buffer = add_random_bytes(cache_bytes(c.cache, placed.buffer_elements), " V");
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
  const auto given = [&](const Placement &p, sluice_tensor &to) {
    if (p.buffer >= 0) to = tensor(p);
  };
  const auto array = [&]<typename Number>(int buffer, const Number *&to) {
    if (buffer >= 0) to = static_cast<const Number *>(bases[size_t(buffer)]);
  };
  sluice_append call;
  sluice_append_init(&call, sizeof call);
  call.flags = (c.wide ? uint32_t(SLUICE_PAGE_INDEX_64) : 0) | (c.v_in_k ? uint32_t(SLUICE_V_IN_K) : 0) |
               (c.zeros ? uint32_t(SLUICE_ZERO_POINTS) : 0);
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
  call.k_scale_kind = c.scale_group != 0 ? uint32_t(SLUICE_SCALE_PER_GROUP) : scale_kind(c.k_scale);
  call.v_scale_kind =
      c.scale_group != 0 && !c.v_in_k ? uint32_t(SLUICE_SCALE_PER_GROUP) : scale_kind(c.v_scale);
  call.scale_group = c.scale_group;
  if (c.v_columns == Columns::whole) call.v_pack = SLUICE_V_PACK_ALL;
  if (c.v_columns == Columns::packs) call.v_pack = rows_of_pack(c);
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
    call.rotary_type = c_type(c.rotary_type);
    call.rotary_first = c.rotary_first;
    array(memory.rotary_sin, call.rotary_sin);
  }
  call.q_heads = c.q_heads;
  call.tail_dim = c.tail_dim;
  given(memory.k_scales, call.k_scales);
  given(memory.v_scales, call.v_scales);
  given(memory.k_zeros, call.k_zeros);
  given(memory.v_zeros, call.v_zeros);
  given(memory.q, call.q);
  given(memory.q_out, call.q_out);
  given(memory.k_tail, call.k_tail);
  given(memory.q_tail, call.q_tail);
  array(memory.k_norm, call.k_norm);
  array(memory.q_norm, call.q_norm);
  if (c.k_norm || c.q_norm) {
    call.norm_epsilon = float(norm_epsilon(c));
    call.norm_type = c_type(norm_type(c));
  }
  return call;
}

namespace {

/// A row after its norm and rotation.
std::vector<Computed> compute_row(const AppendCase &c, const AppendInputs &in, const Side &side, int t,
                                  int h) {
  const size_t size = size_t(side.head_size);
  const double *const row = &side.rows[size_t(t * side.heads + h) * size];
  std::vector<Computed> computed;
  for (size_t e = 0; e < size; ++e)
    computed.push_back({row[e], 0});
  if (!side.norm.empty()) {
    double sum = 0;
    for (size_t e = 0; e < side.norm.size(); ++e)
      sum += row[e] * row[e];
    const double factor = 1 / std::sqrt(sum / double(side.norm.size()) + float(norm_epsilon(c)));
    for (size_t e = 0; e < side.norm.size(); ++e) {
      computed[e].value *= factor * side.norm[e];
      // The sum adds up to 16 products in a lane and 64 lanes in 6 steps; half its error reaches the root,
      // which is off by one last place, and two products by half of one each.
      computed[e].margin = 0x1p-20 * std::fabs(computed[e].value);
    }
  }
  if (!side.is_rotated) return computed;
  const std::vector<Computed> before = computed;
  const int half = c.rotary_dim / 2;
  const double *const numbers = &in.rotary[size_t(in.positions[size_t(t)]) * size_t(c.rotary_dim)];
  for (int pair = 0; pair < half; ++pair) {
    const bool halves = c.rotation == Rotation::halves;
    const int x = c.rotary_first + (halves ? pair : 2 * pair), y = x + (halves ? half : 1);
    const double cosine = numbers[pair], sine = numbers[pair + half];
    const Computed &own = before[size_t(x)], &other = before[size_t(y)];
    // Two products and their sum in F32, each off by at most half a last place, of numbers up to 1, or of
    // subnormal ones.
    const double margin =
        0x1p-23 * (std::fabs(own.value) + std::fabs(other.value)) + 0x1p-148 + own.margin + other.margin;
    computed[size_t(x)] = {own.value * cosine - other.value * sine, margin};
    computed[size_t(y)] = {other.value * cosine + own.value * sine, margin};
  }
  return computed;
}

/// The scale with which the largest finite number of the row becomes `largest`, before it is rounded to F32.
Computed scale_of(const std::vector<Computed> &row, double largest) {
  Computed most = {0, 0};
  for (const Computed &x : row)
    if (std::isfinite(x.value) && std::fabs(x.value) > most.value) most = {std::fabs(x.value), x.margin};
  if (most.value == 0) return {1, 0};
  // With a margin the scale may also be rounded to the neighbour of what is expected.
  const double rounding = most.margin == 0 ? 0 : 0x1p-23 * most.value / largest + 0x1p-149;
  return {most.value / largest, most.margin / largest + rounding};
}

/// The groups of a row, in the cache and in the arrays of scales.
void add_groups(const AppendCase &c, const Side &side, const Slot &to, int head,
                const std::vector<Computed> &row, std::vector<StoredElement> &expected) {
  const bool is_u4 = side.type == Element::u4;
  const int count = is_u4 ? c.scale_group : 32;
  const auto add = [&](int buffer, Element type, int64_t at, const Computed &of) {
    expected.push_back({buffer, type, at, of.value, of.margin});
  };
  for (int e = 0; e < side.head_size; e += count) {
    const StoredGroup group =
        stored_group(side.type, c.zeros, std::span(row).subspan(size_t(e), size_t(count)));
    const int64_t first = side.out.at(to.page, to.row, head, e);
    if (is_u4)
      add(side.scales_out.buffer, Element::f16, side.scales_out.at(to.page, to.row, head, e / count),
          group.scale);
    else
      add(side.out.buffer, Element::f16, scale_index(side.type, first), group.scale);
    if (c.zeros)
      add(side.zeros_out.buffer, Element::f16, side.zeros_out.at(to.page, to.row, head, e / count),
          group.zero);
    for (int i = 0; i < count; ++i)
      add(side.out.buffer, side.type == Element::q8_0 ? Element::i8 : Element::u4,
          number_index(side.type, first + i), group.numbers[size_t(i)]);
  }
}

} // namespace

std::vector<StoredElement> compute_expected(const AppendCase &c, const AppendInputs &in,
                                            const AppendMemory &memory) {
  std::vector<StoredElement> expected;
  const auto add = [&](const Side &side, int t, const Slot &to) {
    for (int h = 0; h < side.heads; ++h) {
      const std::vector<Computed> row = compute_row(c, in, side, t, h);
      if (is_in_groups(side.type)) {
        add_groups(c, side, to, h, row, expected);
        continue;
      }
      Computed scale = {1, 0};
      if (side.scale == Scale::token) {
        const Computed exact = scale_of(row, as_stored(side.type, 1e9));
        expected.push_back({side.scales_out.buffer, Element::f32, side.scales_out.at(to.page, to.row, h, 0),
                            exact.value, exact.margin});
        scale = {as_stored(Element::f32, exact.value), exact.margin};
      } else if (side.scale != Scale::none) {
        const int64_t page = side.scale == Scale::page ? to.page : 0;
        scale.value = side.scales[size_t(page * side.heads + h)];
      }
      for (int e = 0; e < side.head_size; ++e) {
        const Computed &x = row[size_t(e)];
        // Integers have no NaN.
        const bool is_zero = side.type == Element::i8 && std::isnan(x.value);
        const double quotient = is_zero ? 0 : x.value / scale.value;
        expected.push_back({side.out.buffer, side.type, side.out.at(to.page, to.row, h, e), quotient,
                            x.margin / scale.value + std::fabs(quotient) * scale.margin / scale.value});
      }
    }
  };
  const bool rotates = c.rotation != Rotation::none;
  const std::vector<double> none;
  const Placement nowhere{-1};
  const Side k{c.k_scale,      in.k_scale, memory.k_scales, memory.k_zeros, in.k,   in.k_norm,
               memory.k_cache, c.cache,    c.heads,         c.head_size.qk, rotates};
  const Side v{c.v_scale,      in.v_scale, memory.v_scales, memory.v_zeros, in.v, none,
               memory.v_cache, c.cache,    c.heads,         c.head_size.v,  false};
  const Side q{Scale::none,  none,     nowhere,   nowhere,        in.q,   in.q_norm,
               memory.q_out, c.source, c.q_heads, c.head_size.qk, rotates};
  for (int t = 0; t < in.tokens; ++t) {
    const std::optional<Slot> &slot = in.slots[size_t(t)];
    // A query needs no slot, but a sequence, unless rows are placed by slots.
    if (slot || c.finding == Finding::slots) add(q, t, {0, t});
    if (!slot) continue;
    add(k, t, *slot);
    if (!c.v_in_k) add(v, t, *slot);
  }
  return expected;
}

Comparison compare(const AppendCase &, const std::vector<StoredElement> &expected, const AppendMemory &before,
                   const AppendMemory &after) {
  Comparison result;
  std::vector<std::vector<bool>> allowed;
  for (const std::vector<std::byte> &buffer : before.buffers)
    allowed.emplace_back(buffer.size());
  const auto name_of = [&](int buffer) {
    return buffer == before.k_cache.buffer                                        ? "K's cache"
           : buffer == before.v_cache.buffer                                      ? "V's cache"
           : buffer == before.q_out.buffer                                        ? "Q"
           : buffer == before.k_scales.buffer || buffer == before.v_scales.buffer ? "the scales"
           : buffer == before.k_zeros.buffer || buffer == before.v_zeros.buffer   ? "the zeros"
                                                                                  : "an input";
  };
  for (const StoredElement &element : expected) {
    const size_t bytes = bytes_of(element.type);
    const size_t first = element.type == Element::u4 ? size_t(element.at) / 2 : size_t(element.at) * bytes;
    for (size_t i = 0; i < bytes; ++i)
      allowed[size_t(element.buffer)][first + i] = true;
    const double got = load(element.type, after.buffers[size_t(element.buffer)].data(), element.at);
    const double ratio = rounded_error_ratio(element.type, got, element.value, element.margin);
    result.o_ratio = std::max(result.o_ratio, ratio);
    if (ratio > 1)
      result.note(std::string(name_of(element.buffer)) + ", element " + std::to_string(element.at) +
                  ": got " + std::to_string(got) + ", expected " + std::to_string(element.value));
  }
  for (size_t buffer = 0; buffer < before.buffers.size(); ++buffer)
    for (size_t i = 0; i < before.buffers[buffer].size(); ++i)
      if (!allowed[buffer][i] && before.buffers[buffer][i] != after.buffers[buffer][i])
        result.note("byte " + std::to_string(i) + " of " + name_of(int(buffer)) +
                    " was overwritten, but no new row belongs there");
  return result;
}

} // namespace sluice::conformance
