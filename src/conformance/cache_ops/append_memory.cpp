//===- append_memory.cpp - an append in memory, and as the struct of the C ABI --------------------------===//

#include "conformance/cache_ops/append_case.h"

#include "conformance/cache_ops/append_groups.h"
#include "conformance/shared/c_types.h"
#include "conformance/shared/case_random.h"

#include <algorithm>
#include <array>
#include <limits>

namespace sluice::conformance {

namespace {

/// Elements between heads and rows: a multiple of what strides must be a multiple of.
int64_t gap_of(Element element) {
  return is_in_groups(element) ? 32 : 8;
}

/// In a buffer, rows of new tokens or of a cache; [outer][row][head][element].
Placed place(const Extents &e, bool apart, bool is_cache, Element element) {
  const int64_t gap = gap_of(element);
  const int64_t head = e.d + (apart ? gap : 0), row = e.heads * head + (apart ? 2 * gap : 0);
  const int64_t outer = e.rows * row + (apart ? gap : 0);
  return {{.stride = {is_cache ? outer : 0, row, head, 1}}, e.outer * outer};
}

double quiet_nan() {
  return std::numeric_limits<double>::quiet_NaN();
}

/// Of V by columns: 16 bytes, as in aiter's caches.
int rows_of_pack(const AppendCase &c) {
  return int(16 / bytes_of(c.cache));
}

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

namespace {

/// What a call finds at the addresses of its buffers.
struct Found {
  const std::vector<void *> &bases;

  /// All zero if there is none.
  sluice_tensor tensor(const Placement &p) const {
    if (p.buffer < 0) return {};
    return {.data = bases[size_t(p.buffer)], .stride = {p.stride[0], p.stride[1], p.stride[2], p.stride[3]}};
  }
  template <typename Number> const Number *array(int buffer) const {
    return buffer < 0 ? nullptr : static_cast<const Number *>(bases[size_t(buffer)]);
  }
  /// Scales of one number or of heads, or of each row.
  sluice_tensor scales(int one, const Placement &each) const {
    if (one >= 0) return {.data = bases[size_t(one)], .stride = {}};
    return tensor(each);
  }
};

sluice_format format_of(const AppendCase &c, Scale scale, int32_t pack) {
  sluice_format format = {};
  format.type = c_type(c.cache);
  format.scale_kind = c.scale_group != 0 ? uint32_t(SLUICE_SCALE_PER_GROUP) : scale_kind(scale);
  format.scale_group = c.scale_group;
  format.zero_points = c.zeros;
  format.pack = pack;
  return format;
}

void pass_cache(const AppendCase &c, const AppendMemory &memory, const Found &found, KvStructs &out) {
  sluice_kv_format &format = out.format;
  format.flags =
      (c.wide ? uint32_t(SLUICE_KV_PAGE_INDEX_64) : 0) | (c.v_in_k ? uint32_t(SLUICE_KV_V_IN_K) : 0);
  format.kv_heads = c.heads;
  format.head_dim_qk = c.head_size.qk;
  format.head_dim_v = c.v_in_k ? c.head_size.qk : c.head_size.v;
  format.page_size = c.page_size;
  format.page_table = c.finding == Finding::csr ? SLUICE_PAGE_TABLE_CSR : SLUICE_PAGE_TABLE_BLOCK;
  format.k = format_of(c, c.k_scale, c.k_pack);
  const int32_t v_pack = c.v_columns == Columns::whole   ? int32_t(SLUICE_PACK_ALL)
                         : c.v_columns == Columns::packs ? rows_of_pack(c)
                                                         : 0;
  if (!c.v_in_k) format.v = format_of(c, c.v_scale, v_pack);
  out.kv.k = found.tensor(memory.k_cache);
  if (!c.v_in_k) out.kv.v = found.tensor(memory.v_cache);
  out.scales.k = found.scales(memory.k_scale, memory.k_scales);
  out.scales.k_zeros = found.tensor(memory.k_zeros);
  if (!c.v_in_k) {
    out.scales.v = found.scales(memory.v_scale, memory.v_scales);
    out.scales.v_zeros = found.tensor(memory.v_zeros);
  }
  out.point_to_scales();
}

void pass_rotation(const AppendCase &c, const AppendMemory &memory, const Found &found, AppendStructs &out) {
  out.args.positions = found.array<int32_t>(memory.positions);
  if (c.rotation == Rotation::none) return;
  out.rotation.style = c.rotation == Rotation::halves ? SLUICE_ROTARY_HALVES : SLUICE_ROTARY_PAIRS;
  out.rotation.type = c_type(c.rotary_type);
  out.rotation.dim = c.rotary_dim;
  out.rotation.first = c.rotary_first;
  out.rotation.cosines = found.array<void>(memory.rotary);
  out.rotation.sines = found.array<void>(memory.rotary_sin);
  out.rotation.stride = c.rotary_dim;
  out.args.rotation = &out.rotation;
}

void pass_q(const AppendCase &c, const AppendMemory &memory, const Found &found, AppendStructs &out) {
  for (sluice_norm *norm : {&out.k_norm, &out.q_norm}) {
    norm->type = c_type(norm_type(c));
    norm->epsilon = float(norm_epsilon(c));
  }
  out.k_norm.weights = found.array<void>(memory.k_norm);
  out.q_norm.weights = found.array<void>(memory.q_norm);
  if (c.k_norm) out.args.k_norm = &out.k_norm;
  if (c.q_norm) out.q.norm = &out.q_norm;
  if (c.q_heads == 0) return;
  out.q.heads = c.q_heads;
  out.q.q = found.tensor(memory.q);
  out.q.out = found.tensor(memory.q_out);
  out.q.tail = found.tensor(memory.q_tail);
  out.args.q = &out.q;
}

} // namespace

void make_call(const AppendCase &c, const AppendInputs &in, const AppendMemory &memory,
               const std::vector<void *> &bases, AppendStructs &out) {
  const Found found = {bases};
  sluice_append_args &args = out.args;
  pass_cache(c, memory, found, out.cache);
  args.source_type = c_type(c.source);
  args.tokens = in.tokens;
  args.tail_dim = c.tail_dim;
  args.k = found.tensor(memory.k);
  if (!c.v_in_k) args.v = found.tensor(memory.v);
  args.k_tail = found.tensor(memory.k_tail);
  args.slots = found.array<int64_t>(memory.slots);
  args.batch = int32_t(in.lengths.size());
  args.starts = found.array<int32_t>(memory.starts);
  args.lengths = found.array<int32_t>(memory.kv_lengths);
  args.pages = {found.array<void>(memory.page_table), found.array<int32_t>(memory.page_starts),
                memory.table_stride, 0};
  pass_rotation(c, memory, found, out);
  pass_q(c, memory, found, out);
}

} // namespace sluice::conformance
