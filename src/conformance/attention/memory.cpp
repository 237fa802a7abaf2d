//===- memory.cpp - a case's tensors in memory, poisoned and guarded ------------------------------------===//

#include "conformance/attention/memory.h"

#include "conformance/attention/case_elements.h"
#include "conformance/attention/pages.h"
#include "conformance/attention/scores/scores.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>

namespace sluice::conformance {

namespace {

constexpr uint8_t canary = 0xa5;

Element query_element(const Case &c) {
  return has_fp8_queries(c) ? Element::fp8 : element_type(c.dtype);
}

Element output_element(const Case &c) {
  return c.o_f32 ? Element::f32 : c.o_fp8 ? Element::fp8 : element_type(c.dtype);
}

class Builder {
public:
  Builder(const Case &c, const Inputs &in) : c(c), in(in), sequences(c) {}

  Memory build() {
    place_tensors();
    store_tensors();
    add_sequences();
    add_changes();
    add_scales();
    return std::move(memory);
  }

private:
  int add_input(int64_t count, Element element) { return add_poison(memory.buffers, count, element); }
  int add_output(int64_t count, size_t element_bytes) {
    memory.buffers.emplace_back(size_t(count) * element_bytes, std::byte(canary));
    return last_buffer();
  }
  template <typename Number, typename Values> int add_array(const Values &values) {
    return conformance::add_array<Number>(memory.buffers, values);
  }
  int last_buffer() const { return int(memory.buffers.size()) - 1; }

  void place_tensors() {
    const int64_t outer = sequences.q_starts.empty() ? c.batch : 1;
    const int64_t row_qk = row_elements(c.head_size.qk), row_v = row_elements(c.head_size.v);
    const Extents q{outer, sequences.q_rows, c.q_heads, row_qk};
    Extents o = q;
    o.d = row_v;
    Extents k{sequences.kv_starts.empty() ? c.batch : 1, sequences.kv_rows, c.kv_heads, row_qk};
    if (c.mode == Mode::paged) {
      pages.emplace_back(c, sequences);
      k.outer = pages[0].pages_in_all;
      k.rows = c.pages.size;
    } else if (c.layout == Layout::broadcast) {
      k.outer = 1;
    }
    Extents v = k;
    v.d = row_v;

    const bool packed = c.layout == Layout::packed;
    if (packed && c.mode != Mode::paged) {
      place_in_one_buffer({&memory.q, &memory.k, &memory.v}, {q, k, v});
    } else {
      take(memory.q, place(q, c.layout), query_element(c));
      place_keys_and_values(k, v);
    }
    if (is_per_key(c.k_scale)) place_scales(memory.k_scales, k, c.k_scale);
    if (is_per_key(c.v_scale)) place_scales(memory.v_scales, k, c.v_scale);
    const Placed placed_o = place(o, c.layout), lse = place_lse(q, c.layout);
    memory.o = placed_o.placement;
    memory.o.buffer = add_output(placed_o.buffer_elements, output_bytes(c));
    memory.lse = lse.placement;
    memory.lse.buffer = add_output(lse.buffer_elements, 4);
    // A tensor that all sequences share, or whose sequences have starts, has no step between sequences.
    if (c.mode != Mode::paged && (c.layout == Layout::broadcast || !sequences.kv_starts.empty()))
      for (Placement *key_array :
           {&memory.k, &memory.v, &memory.k_scales, &memory.v_scales, &memory.k_zeros, &memory.v_zeros})
        key_array->stride[0] = 0;
    if (!sequences.q_starts.empty()) memory.q.stride[0] = memory.o.stride[0] = memory.lse.stride[0] = 0;
    if (c.prefixes.count != 0 && pages.empty()) {
      const Extents prefix_k{c.prefixes.count, c.prefixes.keys, c.kv_heads, row_qk};
      Extents prefix_v = prefix_k;
      prefix_v.d = row_v;
      take_keys(memory.prefix_k, place(prefix_k, c.layout), cache_element(c));
      if (!c.v_in_k) take_keys(memory.prefix_v, place_values(prefix_v), cache_element(c));
    }
  }

  void place_keys_and_values(const Extents &k, const Extents &v) {
    const Element element = cache_element(c);
    const bool packed = c.layout == Layout::packed;
    if (packed && k_pack(c) == 0) {
      Extents none = k;
      none.heads = 0;
      Placement unused;
      place_in_one_buffer({&unused, &memory.k, &memory.v}, {none, k, v});
      return;
    }
    take_keys(memory.k, k_pack(c) != 0 ? place_x_packed(k, k_pack(c), c.layout) : place(k, c.layout),
              element);
    if (!c.v_in_k) take_keys(memory.v, place_values(v), element);
    if (!has_group_arrays(c)) return;
    place_groups(memory.k_scales, memory.k_zeros, k);
    place_groups(memory.v_scales, memory.v_zeros, c.v_in_k ? k : v);
  }

  Placed place_values(const Extents &v) const {
    return c.v_columns == Columns::none ? place(v, c.layout) : place_by_columns(v, v_pack(c), c.layout);
  }

  void place_scales(Placement &target, Extents keys, Scale scale) {
    if (scale == Scale::page) keys.rows = 1;
    take(target, place_lse(keys, c.layout), Element::f32);
    if (scale == Scale::page) target.stride[1] = 0;
  }

  void take(Placement &target, const Placed &placed, Element element) {
    target = placed.placement;
    target.buffer = add_input(placed.buffer_elements, element);
  }

  /// Of K or V. The bytes of blocks that no row has are those of NaN scales.
  void take_keys(Placement &target, const Placed &placed, Element element) {
    if (!is_in_blocks(c)) return take(target, placed, element);
    target = placed.placement;
    memory.buffers.emplace_back(block_bytes(c, placed.buffer_elements), std::byte(0xff));
    target.buffer = last_buffer();
  }

  /// F16, for each group of a row; numbers to subtract are placed like scales.
  void place_groups(Placement &scales, Placement &zeros, Extents keys) {
    keys.d /= group_elements(c);
    take(scales, place(keys, c.layout), Element::f16);
    if (c.cache == Cache::u4_zeros) take(zeros, place(keys, c.layout), Element::f16);
  }

  void place_in_one_buffer(const std::array<Placement *, 3> &targets, const std::array<Extents, 3> &extents) {
    const PackedTogether placed = place_together(extents);
    const int buffer = add_input(placed.buffer_elements, cache_element(c));
    for (size_t i = 0; i < targets.size(); ++i) {
      *targets[i] = placed.placements[i];
      targets[i]->buffer = buffer;
    }
  }

  using Place = std::array<int64_t, 2>;
  /// The first two indices of a row for each head, if it has one.
  using Row = std::vector<std::optional<Place>>;

  static Row same_row(int heads, Place place) { return Row(size_t(heads), place); }
  Row key_row(int b, int j) const {
    if (pages.empty()) return same_row(c.kv_heads, sequences.kv_row(b, j));
    Row row(static_cast<size_t>(c.kv_heads));
    for (int h = 0; h < c.kv_heads; ++h)
      if (pages[0].has_page(b, h, j / c.pages.size))
        row[size_t(h)] = Place{pages[0].own.page(b, h, j / c.pages.size), j % c.pages.size};
    return row;
  }

  void store_tensors() {
    const Keys own{c, in.k, in.v, in.k_scale, in.v_scale, memory.k, memory.v};
    for (int b = 0; b < c.batch; ++b) {
      for (int i = 0; i < sequences.q_lengths[size_t(b)]; ++i)
        store_row(memory.q, query_element(c), same_row(c.q_heads, sequences.q_row(b, i)), in.q,
                  (int64_t(b) * c.q_len + i), c.q_heads, c.head_size.qk);
      for (int j = 0; j < sequences.kv_lengths[size_t(b)]; ++j)
        store_key(own, key_row(b, j), int64_t(b) * c.kv_len + j);
    }
    if (c.prefixes.count == 0) return;
    const bool paged = !pages.empty();
    const Case as_sequences = prefixes_as_sequences(c);
    const Keys prefix_keys{as_sequences,
                           in.prefix_k,
                           in.prefix_v,
                           in.prefix_k_scale,
                           in.prefix_v_scale,
                           paged ? memory.k : memory.prefix_k,
                           paged ? memory.v : memory.prefix_v};
    for (int p = 0; p < c.prefixes.count; ++p)
      for (int j = 0; j < sequences.prefix_lengths[size_t(p)]; ++j)
        store_key(prefix_keys,
                  same_row(c.kv_heads,
                           paged ? Place{pages[0].prefixes.page(p, 0, j / c.pages.size), j % c.pages.size}
                                 : Place{p, j}),
                  int64_t(p) * c.prefixes.keys + j);
  }

  /// The keys of sequences or prefixes, and where they are stored.
  struct Keys {
    const Case &of; // whose name the groups follow from
    const std::vector<double> &k, &v, &k_scale, &v_scale;
    const Placement &k_place, &v_place;
  };

  /// Arrays of scales are those of K and V, since prefixes outside of pages cannot have scales.
  void store_key(const Keys &keys, const Row &row, int64_t token) {
    const Element cache = cache_element(c);
    if (is_in_blocks(c)) {
      store_blocks(keys.k_place, memory.k_scales, memory.k_zeros, row, Groups(keys.of, false), keys.k, token,
                   c.head_size.qk);
      if (!c.v_in_k)
        store_blocks(keys.v_place, memory.v_scales, memory.v_zeros, row, Groups(keys.of, true), keys.v, token,
                     c.head_size.v);
      else if (has_group_arrays(c))
        copy_groups(row);
    } else {
      store_row(keys.k_place, cache, row, keys.k, token, c.kv_heads, c.head_size.qk);
      end_row(keys.k_place, cache, row);
      if (!c.v_in_k) store_row(keys.v_place, cache, row, keys.v, token, c.kv_heads, c.head_size.v);
    }
    if (is_per_key(c.k_scale))
      store_row(memory.k_scales, Element::f32, row, keys.k_scale, token, c.kv_heads, 1);
    if (is_per_key(c.v_scale))
      store_row(memory.v_scales, Element::f32, row, keys.v_scale, token, c.kv_heads, 1);
  }

  /// visit(head, place) for each head that has the row.
  template <typename Visit> static void for_each_head(const Row &row, Visit visit) {
    for (size_t h = 0; h < row.size(); ++h)
      if (row[h]) visit(int(h), *row[h]);
  }

  void store_row(const Placement &p, Element element, const Row &row, const std::vector<double> &values,
                 int64_t token, int heads, int d) {
    for_each_head(row, [&](int h, Place place) {
      for (int e = 0; e < d; ++e)
        store(memory.buffers[size_t(p.buffer)], element, p.at(place[0], place[1], h, e),
              values[size_t((token * heads + h) * d + e)]);
    });
  }

  /// What follows the elements of K must be finite, but has no influence.
  void end_row(const Placement &p, Element element, const Row &row) {
    for_each_head(row, [&](int h, Place place) {
      for (int64_t e = c.head_size.qk; e < row_elements(c.head_size.qk); ++e)
        store(memory.buffers[size_t(p.buffer)], element, p.at(place[0], place[1], h, e), 100);
    });
  }

  void store_blocks(const Placement &p, const Placement &scales, const Placement &zeros, const Row &row,
                    const Groups &groups, const std::vector<double> &values, int64_t token, int d) {
    for_each_head(row, [&](int h, Place place) {
      for (int e = 0; e < d; ++e) {
        const int number = e / group_elements(c);
        const Group group = groups.of(token, h, number);
        const double value = values[size_t((token * c.kv_heads + h) * d + e)];
        store_in_block(c, memory.buffers[size_t(p.buffer)], p.at(place[0], place[1], h, e),
                       groups.number_of(group, value), group.scale);
        if (!has_group_arrays(c)) continue;
        store(memory.buffers[size_t(scales.buffer)], Element::f16, scales.at(place[0], place[1], h, number),
              group.scale);
        if (c.cache == Cache::u4_zeros)
          store(memory.buffers[size_t(zeros.buffer)], Element::f16, zeros.at(place[0], place[1], h, number),
                group.subtracted);
      }
    });
  }

  /// V in K: V's arrays are K's.
  void copy_groups(const Row &row) {
    for_each_head(row, [&](int h, Place place) {
      for (int g = 0; g < c.head_size.qk / group_elements(c); ++g)
        for (const auto &[from, to] :
             {std::pair{&memory.k_scales, &memory.v_scales}, std::pair{&memory.k_zeros, &memory.v_zeros}}) {
          if (from->buffer < 0) continue;
          const int64_t at = from->at(place[0], place[1], h, g);
          store(memory.buffers[size_t(to->buffer)], Element::f16, at,
                load(Element::f16, memory.buffers[size_t(from->buffer)].data(), at));
        }
    });
  }

  void add_sequences() {
    if (has_diagonals(c)) memory.diagonals = add_array<int32_t>(sequences.shifts);
    if (c.causal_by_sequence) {
      // Any number but 0 is true.
      std::vector<int> causal;
      for (size_t b = 0; b < sequences.causal.size(); ++b)
        causal.push_back(sequences.causal[b] ? 1 - 3 * int(b) : 0);
      memory.causal = add_array<int32_t>(causal);
    }
    if (c.spans) {
      std::vector<int> ends;
      for (const Span &span : sequences.spans)
        ends.insert(ends.end(), {span.first, span.end});
      memory.spans = add_array<int32_t>(ends);
    }
    if (!sequences.q_starts.empty()) memory.q_starts = add_array<int32_t>(sequences.q_starts);
    if (!sequences.kv_starts.empty()) memory.kv_starts = add_array<int32_t>(sequences.kv_starts);
    const bool lengths = c.rows == Rows::lengths || c.rows == Rows::gaps;
    if (lengths) memory.q_lengths = add_array<int32_t>(sequences.q_lengths);
    if (lengths || c.mode == Mode::paged) memory.kv_lengths = add_array<int32_t>(sequences.kv_lengths);
    if (!pages.empty()) {
      const TableEntries &table = pages[0].own;
      memory.page_table = add_entries(table);
      memory.page_table_stride = table.stride;
      memory.page_table_head_stride = table.head_stride;
      if (!table.starts.empty()) memory.page_starts = add_array<int32_t>(table.starts);
    }
    if (c.prefixes.count != 0) add_prefixes();
  }

  int add_entries(const TableEntries &table) {
    return c.pages.wide ? add_array<int64_t>(table.entries) : add_array<int32_t>(table.entries);
  }

  void add_prefixes() {
    std::vector<int> starts = sequences.prefix_starts;
    // A call for one sequence without starts counts its rows from 0.
    for (int b = 0; sequences.q_starts.empty() && b < c.batch; ++b)
      for (int start : sequences.prefix_starts)
        starts.push_back(std::clamp(start - b * c.q_len, 0, c.q_len));
    memory.prefix_q_starts = add_array<int32_t>(starts);
    memory.prefix_lengths = add_array<int32_t>(sequences.prefix_lengths);
    if (pages.empty()) return;
    const TableEntries &table = pages[0].prefixes;
    memory.prefix_page_table = add_entries(table);
    memory.prefix_page_table_stride = table.stride;
    if (!table.starts.empty()) memory.prefix_page_starts = add_array<int32_t>(table.starts);
  }

  void add_changes() {
    const Storage storage{c, sequences, memory.buffers};
    for (const ScoreChange *change : score_changes)
      if (change->store && change->is_in(c))
        memory.changes[*change] = change->store(storage, in.changes[*change]);
  }

  void add_scales() {
    auto add_scale = [&](Scale scale, const std::vector<double> &values) {
      if (scale == Scale::none || is_per_key(scale)) return -1;
      return scale == Scale::head ? add_array<float>(values) : add_array<float>(std::array{values.front()});
    };
    memory.q_scale = add_scale(c.q_scale, in.q_scale);
    memory.k_scale = add_scale(c.k_scale, in.k_scale);
    memory.v_scale = add_scale(c.v_scale, in.v_scale);
    memory.o_scale = add_scale(c.o_scale, in.o_scale);
  }

  const Case &c;
  const Inputs &in;
  const Sequences sequences;
  std::vector<PageTable> pages; // one or none
  Memory memory;
};

/// The rows of all sequences.
template <typename Visit> void for_each_row(const Case &c, Visit visit) {
  const Sequences sequences(c);
  for (int b = 0; b < c.batch; ++b)
    for (int i = 0; i < sequences.q_lengths[size_t(b)]; ++i)
      for (int h = 0; h < c.q_heads; ++h)
        visit(sequences.q_row(b, i), b, i, h);
}

} // namespace

int add_poison(std::vector<std::vector<std::byte>> &buffers, int64_t count, Element element) {
  std::vector<std::byte> &buffer = buffers.emplace_back(size_t(count) * bytes_of(element));
  for (int64_t i = 0; i < count; ++i)
    store(buffer, element, i,
          bytes_of(element) != 1 && i % 2 ? std::numeric_limits<double>::infinity() : std::nan(""));
  return int(buffers.size()) - 1;
}

Memory make_memory(const Case &c, const Inputs &inputs) {
  return Builder(c, inputs).build();
}

Outputs read_outputs(const Case &c, const Memory &memory) {
  Outputs out;
  const size_t d = size_t(c.head_size.v);
  out.o.resize(size_t(c.batch) * c.q_len * c.q_heads * d);
  if (c.lse) out.lse.resize(size_t(c.batch) * c.q_heads * c.q_len);
  const std::byte *const o = memory.buffers[memory.o.buffer].data();
  const auto *const lse = reinterpret_cast<const float *>(memory.buffers[memory.lse.buffer].data());
  for_each_row(c, [&](const std::array<int64_t, 2> &row, int b, int i, int h) {
    double *const to = &out.o[((size_t(b) * c.q_len + i) * c.q_heads + h) * d];
    for (size_t e = 0; e < d; ++e)
      to[e] = load(output_element(c), o, memory.o.at(row[0], row[1], h, int64_t(e)));
    if (c.lse) out.lse[(size_t(b) * c.q_heads + h) * c.q_len + i] = lse[memory.lse.at(row[0], row[1], h, 0)];
  });
  return out;
}

std::string find_stray_write(const Case &c, const Memory &before, const Memory &after) {
  // The bytes that may differ.
  std::vector<std::vector<bool>> allowed;
  for (const std::vector<std::byte> &buffer : before.buffers)
    allowed.emplace_back(buffer.size(), false);
  for_each_row(c, [&](const std::array<int64_t, 2> &row, int, int, int h) {
    const size_t bytes = output_bytes(c), o = size_t(before.o.at(row[0], row[1], h, 0)) * bytes;
    for (size_t i = 0; i < bytes * size_t(row_elements(c.head_size.v)); ++i)
      allowed[before.o.buffer][o + i] = true;
    const int64_t lse = before.lse.at(row[0], row[1], h, 0) * 4;
    if (c.lse)
      for (int i = 0; i < 4; ++i)
        allowed[before.lse.buffer][lse + i] = true;
  });
  for (size_t buffer = 0; buffer < before.buffers.size(); ++buffer)
    for (size_t i = 0; i < before.buffers[buffer].size(); ++i)
      if (!allowed[buffer][i] && before.buffers[buffer][i] != after.buffers[buffer][i]) {
        const bool is_o = int(buffer) == before.o.buffer, is_lse = int(buffer) == before.lse.buffer;
        return "byte " + std::to_string(i) + " of " + std::to_string(before.buffers[buffer].size()) + " of " +
               (is_o     ? "O's"
                : is_lse ? "LSE's"
                         : "an input's") +
               " buffer was overwritten, which is not an element of " +
               (is_o     ? "O"
                : is_lse ? "LSE"
                         : "an output");
      }
  return "";
}

} // namespace sluice::conformance
