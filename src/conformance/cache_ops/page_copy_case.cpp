//===- page_copy_case.cpp - the inputs of copies and gathers, and what must arrive ----------------------===//

#include "conformance/cache_ops/page_copy_case.h"

#include "conformance/cache_ops/append_groups.h"
#include "conformance/shared/c_types.h"
#include "conformance/shared/case_random.h"

#include <algorithm>
#include <cstring>
#include <limits>

namespace sluice::conformance {

namespace {

// Sequences with and without keys, some at the ends of pages; and how many of their first keys are left out.
constexpr std::array keys_of = {5, 0, 16, 1, 33, 7}, left_out = {2, 0, 15, 1, 16, 0};
// Rows of the output before the first sequence, after each, and after the last belong to no key.
constexpr int rows_in_front = 2, rows_between = 1, rows_behind = 3;
constexpr int64_t copied_pages = 5, unowned_pages = 3;

void find_copied_rows(const PageCopyCase &c, PageCopyInputs &in) {
  std::vector<std::pair<int64_t, int64_t>> pairs;
  if (c.moving == Moving::same_page) {
    in.pages = copied_pages;
    for (int64_t page = 0; page < in.pages; ++page)
      pairs.emplace_back(page, page);
  } else {
    // No page is both read and written, as in a fork; a source goes to two targets.
    in.pages = 2 * copied_pages + unowned_pages;
    const std::vector<int64_t> order = shuffled(in.pages, random_of(c, " pages"));
    for (size_t i = 0; i < size_t(copied_pages); ++i)
      pairs.emplace_back(order[i == 1 ? 0 : i], order[size_t(copied_pages) + i]);
  }
  for (const auto &[from, to] : pairs) {
    for (int row = 0; row < c.page_size; ++row)
      in.rows.push_back({from, row, to, row});
    if (c.moving == Moving::pairs) in.pairs.insert(in.pairs.end(), {from, to});
  }
  // Pairs that are skipped.
  if (c.moving == Moving::pairs) in.pairs.insert(in.pairs.begin(), {-1, pairs[0].second, pairs[1].first, -7});
}

void find_gathered_rows(const PageCopyCase &c, PageCopyInputs &in) {
  const auto pages_for = [&](int keys) { return (keys + c.page_size - 1) / c.page_size; };
  for (const int keys : keys_of)
    in.pages += pages_for(keys);
  in.pages += unowned_pages;
  const std::vector<int64_t> order = shuffled(in.pages, random_of(c, " pages"));
  size_t next = 0;
  in.starts = {rows_in_front};
  for (size_t b = 0; b < keys_of.size(); ++b) {
    std::vector<int64_t> &table = in.tables.emplace_back();
    for (int n = 0; n < pages_for(keys_of[b]); ++n)
      table.push_back(order[next++]);
    const int first = c.first_keys ? std::min(left_out[b], keys_of[b]) : 0;
    for (int key = first; key < keys_of[b]; ++key)
      in.rows.push_back(
          {table[size_t(key / c.page_size)], key % c.page_size, 0, in.starts.back() + key - first});
    in.lengths.push_back(keys_of[b]);
    in.first_keys.push_back(first);
    in.starts.push_back(in.starts.back() + keys_of[b] - first + rows_between);
  }
  in.out_rows = in.starts.back() + rows_behind;
}

} // namespace

PageCopyInputs make_inputs(const PageCopyCase &c) {
  PageCopyInputs in;
  c.is_gather() ? find_gathered_rows(c, in) : find_copied_rows(c, in);
  const auto scales = [&](Scale scale, const char *what) {
    Random random = random_of(c, what);
    std::vector<double> values(size_t(c.heads), 1);
    const bool has_few = scale == Scale::tensor || scale == Scale::head;
    for (size_t h = 0; has_few && h < values.size(); ++h)
      values[h] = scale == Scale::head || h == 0 ? float(std::ldexp(0.02 + 0.1 * random.uniform(), c.power))
                                                 : values.front();
    return values;
  };
  in.k_scale = scales(c.k_scale, " k_scale");
  in.v_scale = scales(c.v_scale, " v_scale");
  return in;
}

namespace {

class Builder {
public:
  Builder(const PageCopyCase &of, const PageCopyInputs &inputs) : c(of), in(inputs) {}

  PageCopyMemory build() {
    memory.k_source.elements = add_source(c.head_size.qk, c.source_k_pack, " K");
    memory.k_target.elements =
        add_target(memory.k_source.elements, c.head_size.qk, c.target_k_pack, " K's target");
    add_arrays(c.k_scale, c.head_size.qk, memory.k_source, memory.k_target, " arrays of K");
    if (!c.v_in_k) {
      memory.v_source.elements = add_source(c.head_size.v, 0, " V");
      memory.v_target.elements = add_target(memory.v_source.elements, c.head_size.v, 0, " V's target");
      add_arrays(c.v_scale, c.head_size.v, memory.v_source, memory.v_target, " arrays of V");
    }
    if (c.moving == Moving::pairs) memory.pairs = add_numbers(in.pairs);
    if (c.is_gather()) add_tables();
    const auto has_few = [](Scale scale) { return scale == Scale::tensor || scale == Scale::head; };
    if (has_few(c.k_scale)) memory.k_scale = add_factors(c.k_scale, in.k_scale);
    if (has_few(c.v_scale)) memory.v_scale = add_factors(c.v_scale, in.v_scale);
    return std::move(memory);
  }

private:
  template <typename Number, typename Values> int add_array(const Values &values) {
    return conformance::add_array<Number>(memory.buffers, values);
  }
  int add_numbers(const std::vector<int64_t> &numbers) {
    return c.wide ? add_array<int64_t>(numbers) : add_array<int32_t>(numbers);
  }
  int add_factors(Scale scale, std::vector<double> values) {
    if (scale == Scale::tensor) values.resize(1);
    return add_array<float>(values);
  }

  /// Random bytes: those that are copied keep every bit, and those that are not written must stay.
  Placement add_bytes(Placed placed, Element element, const char *what) {
    std::vector<std::byte> &buffer = memory.buffers.emplace_back(
        is_in_groups(element) ? cache_bytes(element, placed.buffer_elements)
                              : size_t(placed.buffer_elements) * bytes_of(element));
    Random random = random_of(c, what);
    for (std::byte &byte : buffer)
      byte = std::byte(random.below(256));
    placed.placement.buffer = int(memory.buffers.size()) - 1;
    return placed.placement;
  }
  /// [outer][row][head][element], whose gaps are whole blocks.
  Placed place_rows(const Extents &e, int64_t unit) const {
    const int64_t gap = c.apart ? unit : 0, head = e.d + gap, row = e.heads * head + 2 * gap,
                  outer = e.rows * row + gap;
    return {{.stride = {outer, row, head, 1}}, e.outer * outer};
  }
  Placed place_cache(int head_size, int pack, Layout layout) const {
    const Extents extents{in.pages, c.page_size, c.heads, head_size};
    if (is_in_groups(c.source)) return place_rows(extents, 32);
    if (c.apart) layout = Layout::padded;
    return pack == 0 ? place(extents, layout) : place_x_packed(extents, pack, layout);
  }

  Placement add_source(int head_size, int pack, const char *what) {
    const Placed placed = place_cache(head_size, pack, Layout::bshd);
    const Placement source = add_bytes(placed, c.source, what);
    if (c.source == c.target) return source;
    if (c.source == Element::q8_0 || c.source == Element::q4_0) {
      Random random = random_of(c, " scales of blocks");
      for (int64_t i = 0; i < placed.buffer_elements; i += 32)
        store(memory.buffers[size_t(source.buffer)], Element::f16, scale_index(c.source, i),
              0.1 * random.normal());
    }
    if (bytes_of(c.source) == 1) return source;
    // Numbers of all sizes, but few that are not finite.
    Random random = random_of(c, " numbers"), special = random_of(c, " not a number");
    for (int64_t i = 0; i < placed.buffer_elements; ++i) {
      double value = 2 * random.normal();
      const size_t kind = special.below(97);
      if (kind > 90) value *= 150; // beyond the largest FP8 number
      if (c.not_finite && kind == 0) value = std::numeric_limits<double>::quiet_NaN();
      if (c.not_finite && kind == 1) value = -std::numeric_limits<double>::infinity();
      store(memory.buffers[size_t(source.buffer)], c.source, i,
            as_stored(c.source, std::ldexp(value, c.power)));
    }
    return source;
  }

  Placement add_target(const Placement &source, int head_size, int pack, const char *what) {
    if (c.fork) return source;
    if (!c.is_gather()) return add_bytes(place_cache(head_size, pack, Layout::bhsd), c.target, what);
    const Extents extents{1, in.out_rows, c.heads, head_size};
    Placed placed = is_in_groups(c.target) ? place_rows(extents, 32)
                                           : place(extents, c.apart ? Layout::padded : Layout::bshd);
    placed.placement.stride[0] = 0;
    return add_bytes(placed, c.target, what);
  }

  /// Random numbers in the source's arrays, and random bytes in the target's.
  void add_arrays(Scale scale, int head_size, PageCopyTensors &source, PageCopyTensors &target,
                  const char *what) {
    const bool is_u4 = c.source == Element::u4, is_of_pages = scale == Scale::page;
    if (!is_u4 && scale != Scale::token && !is_of_pages) return;
    const Element element = is_u4 ? Element::f16 : Element::f32;
    const int groups = is_u4 ? head_size / c.scale_group : 1;
    Placed from = place_rows({in.pages, is_of_pages ? 1 : c.page_size, c.heads, groups}, 3);
    Placed to = c.is_gather() ? place_rows({1, in.out_rows, c.heads, groups}, 5) : from;
    if (is_of_pages) from.placement.stride[1] = 0;
    if (c.is_gather())
      to.placement.stride[0] = 0;
    else
      to.placement = from.placement;
    Random random = random_of(c, what);
    const auto add = [&](Placement &array, Placement &target_array, auto number) {
      array = add_bytes(from, element, what);
      for (int64_t i = 0; i < from.buffer_elements; ++i)
        store(memory.buffers.back(), element, i, number());
      if (c.source != c.target) return;
      target_array = c.fork ? array : add_bytes(to, element, " a target's array");
    };
    add(source.scales, target.scales,
        [&] { return is_u4 ? 0.1 * random.normal() : float(0.02 + 0.1 * random.uniform()); });
    if (c.zeros) add(source.zeros, target.zeros, [&] { return 15 * random.uniform() + random.normal(); });
  }

  void add_tables() {
    // Entries that no sequence needs name pages that do not exist; the last sequence's entries end the array.
    size_t longest = 0;
    for (const std::vector<int64_t> &table : in.tables)
      longest = std::max(longest, table.size());
    if (c.moving == Moving::block) memory.table_stride = int64_t(longest) + 2;
    std::vector<int64_t> table, page_starts = {0};
    for (size_t b = 0; b < in.tables.size(); ++b) {
      if (c.moving == Moving::block) table.resize(b * size_t(memory.table_stride), 0x7fffffff);
      table.insert(table.end(), in.tables[b].begin(), in.tables[b].end());
      page_starts.push_back(int64_t(table.size()));
    }
    memory.page_table = add_numbers(table);
    if (c.moving == Moving::csr) memory.page_starts = add_array<int32_t>(page_starts);
    memory.starts = add_array<int32_t>(in.starts);
    memory.kv_lengths = add_array<int32_t>(in.lengths);
    if (c.first_keys) memory.first_keys = add_array<int32_t>(in.first_keys);
  }

  const PageCopyCase &c;
  const PageCopyInputs &in;
  PageCopyMemory memory;
};

sluice_tensor tensor(const Placement &p, Element element, const std::vector<void *> &bases) {
  if (p.buffer < 0) return {};
  return {.data = static_cast<char *>(bases[size_t(p.buffer)]) + size_t(p.offset) * bytes_of(element),
          .stride = {p.stride[0], p.stride[1], p.stride[2], p.stride[3]}};
}

template <typename Number> void set_array(const Number *&to, int buffer, const std::vector<void *> &bases) {
  if (buffer >= 0) to = static_cast<const Number *>(bases[size_t(buffer)]);
}

/// The numbers of a source that are multiplied by scales have them; else those of a target that are divided.
bool has_target_scales(const PageCopyCase &c) {
  return c.source == Element::f16 || c.source == Element::bf16;
}

sluice_format format_of(const PageCopyCase &c, Element element, Scale scale, bool is_scaled, int32_t pack) {
  sluice_format format = {};
  format.type = c_type(element);
  format.pack = pack;
  if (element == Element::u4) {
    format.scale_kind = SLUICE_SCALE_PER_GROUP;
    format.scale_group = c.scale_group;
    format.zero_points = c.zeros;
  } else if (is_scaled) {
    format.scale_kind = scale_kind(scale);
  }
  return format;
}

/// One side of a copy or a gather, without its pages.
void pass_side(const PageCopyCase &c, bool is_source, const PageCopyMemory &memory,
               const std::vector<void *> &bases, KvStructs &out) {
  const Element element = is_source ? c.source : c.target;
  const bool is_same = c.source == c.target, is_scaled = is_same || is_source != has_target_scales(c);
  const PageCopyTensors &k = is_source ? memory.k_source : memory.k_target,
                        &v = is_source ? memory.v_source : memory.v_target;
  sluice_kv_format &format = out.format;
  format.flags = c.v_in_k ? uint32_t(SLUICE_KV_V_IN_K) : 0;
  format.kv_heads = c.heads;
  format.head_dim_qk = c.head_size.qk;
  format.head_dim_v = c.v_in_k ? c.head_size.qk : c.head_size.v;
  // A gather has the scale of a page for each of its rows.
  const auto kind_of = [&](Scale scale) {
    return scale == Scale::page && !is_source && c.is_gather() ? Scale::token : scale;
  };
  format.k =
      format_of(c, element, kind_of(c.k_scale), is_scaled, is_source ? c.source_k_pack : c.target_k_pack);
  if (!c.v_in_k) format.v = format_of(c, element, kind_of(c.v_scale), is_scaled, 0);
  out.kv.k = tensor(k.elements, element, bases);
  if (!c.v_in_k) out.kv.v = tensor(v.elements, element, bases);
  const Element array_type = element == Element::u4 ? Element::f16 : Element::f32;
  const auto scales_of = [&](int one, const Placement &each) -> sluice_tensor {
    if (one >= 0 && is_scaled) return {.data = bases[size_t(one)], .stride = {}};
    return tensor(each, array_type, bases);
  };
  out.scales.k = scales_of(memory.k_scale, k.scales);
  out.scales.k_zeros = tensor(k.zeros, array_type, bases);
  if (!c.v_in_k) {
    out.scales.v = scales_of(memory.v_scale, v.scales);
    out.scales.v_zeros = tensor(v.zeros, array_type, bases);
  }
  out.point_to_scales();
}

template <typename Args>
void pass_sides(const PageCopyCase &c, const PageCopyMemory &memory, const std::vector<void *> &bases,
                MoveStructs<Args> &out) {
  pass_side(c, true, memory, bases, out.source);
  pass_side(c, false, memory, bases, out.target);
}

} // namespace

PageCopyMemory make_memory(const PageCopyCase &c, const PageCopyInputs &in) {
  return Builder(c, in).build();
}

void make_page_copy(const PageCopyCase &c, const PageCopyInputs &in, const PageCopyMemory &memory,
                    const std::vector<void *> &bases, CopyStructs &out) {
  pass_sides(c, memory, bases, out);
  for (KvStructs *side : {&out.source, &out.target}) {
    side->format.page_size = c.page_size;
    side->format.page_table = SLUICE_PAGE_TABLE_BLOCK;
    side->kv.page_count = in.pages;
  }
  out.args.pairs_64 = c.wide;
  if (memory.pairs >= 0) out.args.pairs = bases[size_t(memory.pairs)];
  out.args.pair_count = int64_t(in.pairs.size() / 2);
}

void make_gather(const PageCopyCase &c, const PageCopyInputs &in, const PageCopyMemory &memory,
                 const std::vector<void *> &bases, GatherStructs &out) {
  pass_sides(c, memory, bases, out);
  sluice_kv_format &format = out.source.format;
  if (c.wide) format.flags |= SLUICE_KV_PAGE_INDEX_64;
  format.page_size = c.page_size;
  format.page_table = c.moving == Moving::block ? SLUICE_PAGE_TABLE_BLOCK : SLUICE_PAGE_TABLE_CSR;
  out.source.kv.page_count = in.pages;
  sluice_gather_args &args = out.args;
  args.batch = int32_t(in.lengths.size());
  args.tokens = int32_t(in.out_rows);
  set_array(args.starts, memory.starts, bases);
  set_array(args.lengths, memory.kv_lengths, bases);
  set_array(args.first_keys, memory.first_keys, bases);
  if (memory.page_table >= 0) args.pages.table = bases[size_t(memory.page_table)];
  args.pages.stride = memory.table_stride;
  set_array(args.pages.starts, memory.page_starts, bases);
}

namespace {

/// The elements that are moved together between equal types, and their bytes.
std::pair<int, size_t> unit_of(Element element) {
  if (element == Element::u4) return {2, 1};
  if (is_in_groups(element)) return {32, cache_bytes(element, 32)};
  return {1, bytes_of(element)};
}

/// The number of an element of a source, before its scale, if that is not its block's.
double number_of(Element element, const std::byte *buffer, int64_t at) {
  if (!is_in_groups(element)) return load(element, buffer, at);
  if (element == Element::u4) return load(element, buffer, at);
  const bool is_q8 = element == Element::q8_0;
  const double number = load(is_q8 ? Element::i8 : Element::u4, buffer, number_index(element, at));
  return (is_q8 ? number : number - 8) * load(Element::f16, buffer, scale_index(element, at));
}

} // namespace

std::vector<MovedElement> compute_expected(const PageCopyCase &c, const PageCopyInputs &in,
                                           const PageCopyMemory &memory) {
  std::vector<MovedElement> expected;
  const auto add_bits = [&](const Placement &source, const Placement &target, const MovedRow &row, int h,
                            int e, int elements, size_t bytes) {
    expected.push_back({target.buffer, target.at(row.to_page, row.to_row, h, e) / elements,
                        source.at(row.from_page, row.from_row, h, e) / elements, source.buffer, bytes, true,
                        0});
  };
  const auto add = [&](const PageCopyTensors &source, const PageCopyTensors &target, int head_size,
                       const std::vector<double> &scales) {
    const bool is_u4 = c.source == Element::u4;
    const Element array_type = is_u4 ? Element::f16 : Element::f32;
    const int groups = is_u4 ? head_size / c.scale_group : 1;
    const auto in_array = [&](const Placement &array, const MovedRow &row, int h, int group) {
      return load(array_type, memory.buffers[size_t(array.buffer)].data(),
                  array.at(row.from_page, row.from_row, h, group));
    };
    for (const MovedRow &row : in.rows)
      for (int h = 0; h < c.heads; ++h) {
        if (c.source == c.target) {
          const auto [elements, bytes] = unit_of(c.source);
          for (int e = 0; e < head_size; e += elements)
            add_bits(source.elements, target.elements, row, h, e, elements, bytes);
          for (const auto &[from, to] :
               {std::pair{&source.scales, &target.scales}, std::pair{&source.zeros, &target.zeros}})
            for (int group = 0; from->buffer >= 0 && group < groups; ++group)
              add_bits(*from, *to, row, h, group, 1, bytes_of(array_type));
          continue;
        }
        for (int e = 0; e < head_size; ++e) {
          const int64_t from = source.elements.at(row.from_page, row.from_row, h, e);
          const double number =
              number_of(c.source, memory.buffers[size_t(source.elements.buffer)].data(), from);
          const int group = is_u4 ? e / c.scale_group : 0;
          const double scale =
              source.scales.buffer >= 0 ? in_array(source.scales, row, h, group) : scales[size_t(h)];
          const double zero = !is_u4                     ? 0
                              : source.zeros.buffer >= 0 ? in_array(source.zeros, row, h, group)
                                                         : 8;
          expected.push_back({target.elements.buffer, target.elements.at(row.to_page, row.to_row, h, e), from,
                              source.elements.buffer, bytes_of(c.target), false,
                              c.target == Element::fp8 ? number / scale : (number - zero) * scale});
        }
      }
  };
  add(memory.k_source, memory.k_target, c.head_size.qk, in.k_scale);
  if (!c.v_in_k) add(memory.v_source, memory.v_target, c.head_size.v, in.v_scale);
  return expected;
}

Comparison compare(const PageCopyCase &c, const std::vector<MovedElement> &expected,
                   const PageCopyMemory &before, const PageCopyMemory &after) {
  Comparison result;
  std::vector<std::vector<bool>> allowed;
  for (const std::vector<std::byte> &buffer : before.buffers)
    allowed.emplace_back(buffer.size());
  for (const MovedElement &element : expected) {
    const size_t bytes = element.bytes;
    for (size_t i = 0; i < bytes; ++i)
      allowed[size_t(element.buffer)][size_t(element.at) * bytes + i] = true;
    const std::byte *const got = after.buffers[size_t(element.buffer)].data();
    const std::string where =
        "buffer " + std::to_string(element.buffer) + ", element " + std::to_string(element.at);
    if (element.is_bits) {
      const std::byte *const wanted = before.buffers[size_t(element.from_buffer)].data();
      if (std::memcmp(got + size_t(element.at) * bytes, wanted + size_t(element.from) * bytes, bytes) != 0)
        result.note(where + ": its bits are not those of the source's element " +
                    std::to_string(element.from));
      continue;
    }
    const double number = load(c.target, got, element.at);
    const double ratio = rounded_error_ratio(c.target, number, element.value, 0);
    result.o_ratio = std::max(result.o_ratio, ratio);
    if (ratio > 1)
      result.note(where + ": got " + std::to_string(number) + ", expected " + std::to_string(element.value));
  }
  for (size_t buffer = 0; buffer < before.buffers.size(); ++buffer)
    for (size_t i = 0; i < before.buffers[buffer].size(); ++i)
      if (!allowed[buffer][i] && before.buffers[buffer][i] != after.buffers[buffer][i])
        result.note("byte " + std::to_string(i) + " of buffer " + std::to_string(buffer) +
                    " was overwritten, but no row belongs there");
  return result;
}

} // namespace sluice::conformance
