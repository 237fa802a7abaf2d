//===- copy_case.cpp - the inputs of copies and gathers, and what must arrive ---------------------------===//

#include "copy_case.h"

#include "call.h"
#include "case_random.h"

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

void find_copied_rows(const CopyCase &c, CopyInputs &in) {
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

void find_gathered_rows(const CopyCase &c, CopyInputs &in) {
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

CopyInputs make_inputs(const CopyCase &c) {
  CopyInputs in;
  c.is_gather() ? find_gathered_rows(c, in) : find_copied_rows(c, in);
  const auto scales = [&](Scale scale, const char *what) {
    Random random = random_of(c, what);
    std::vector<double> values(size_t(c.heads), 1);
    for (size_t h = 0; scale != Scale::none && h < values.size(); ++h)
      values[h] = scale == Scale::head || h == 0 ? float(0.02 + 0.1 * random.uniform()) : values.front();
    return values;
  };
  in.k_scale = scales(c.k_scale, " k_scale");
  in.v_scale = scales(c.v_scale, " v_scale");
  return in;
}

namespace {

class Builder {
public:
  Builder(const CopyCase &of, const CopyInputs &inputs) : c(of), in(inputs) {}

  CopyMemory build() {
    memory.k_source = add_source(c.head_size.qk, c.source_k_pack, " K");
    memory.k_target = add_target(memory.k_source, c.head_size.qk, c.target_k_pack, " K's target");
    if (!c.v_in_k) {
      memory.v_source = add_source(c.head_size.v, 0, " V");
      memory.v_target = add_target(memory.v_source, c.head_size.v, 0, " V's target");
    }
    if (c.moving == Moving::pairs) memory.pairs = add_numbers(in.pairs);
    if (c.is_gather()) add_tables();
    if (c.k_scale != Scale::none) memory.k_scale = add_factors(c.k_scale, in.k_scale);
    if (c.v_scale != Scale::none) memory.v_scale = add_factors(c.v_scale, in.v_scale);
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
    std::vector<std::byte> &buffer =
        memory.buffers.emplace_back(size_t(placed.buffer_elements) * bytes_of(element));
    Random random = random_of(c, what);
    for (std::byte &byte : buffer)
      byte = std::byte(random.below(256));
    placed.placement.buffer = int(memory.buffers.size()) - 1;
    return placed.placement;
  }
  Placed place_cache(int head_size, int pack, Layout layout) const {
    const Extents extents{in.pages, c.page_size, c.heads, head_size};
    if (c.apart) layout = Layout::padded;
    return pack == 0 ? place(extents, layout) : place_x_packed(extents, pack, layout);
  }

  Placement add_source(int head_size, int pack, const char *what) {
    const Placed placed = place_cache(head_size, pack, Layout::bshd);
    const Placement source = add_bytes(placed, c.source, what);
    if (c.source == c.target || c.source == Element::fp8) return source;
    // Numbers of all sizes, but few that are not finite.
    Random random = random_of(c, " numbers"), special = random_of(c, " not a number");
    for (int64_t i = 0; i < placed.buffer_elements; ++i) {
      double value = 2 * random.normal();
      const size_t kind = special.below(97);
      if (kind > 90) value *= 150; // beyond the largest FP8 number
      if (c.not_finite && kind == 0) value = std::numeric_limits<double>::quiet_NaN();
      if (c.not_finite && kind == 1) value = -std::numeric_limits<double>::infinity();
      store(memory.buffers[size_t(source.buffer)], c.source, i, as_stored(c.source, value));
    }
    return source;
  }

  Placement add_target(const Placement &source, int head_size, int pack, const char *what) {
    if (c.fork) return source;
    if (!c.is_gather()) return add_bytes(place_cache(head_size, pack, Layout::bhsd), c.target, what);
    Placed placed = place({1, in.out_rows, c.heads, head_size}, c.apart ? Layout::padded : Layout::bshd);
    placed.placement.stride[0] = 0;
    return add_bytes(placed, c.target, what);
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

  const CopyCase &c;
  const CopyInputs &in;
  CopyMemory memory;
};

sluice_tensor tensor(const Placement &p, Element element, const std::vector<void *> &bases) {
  return {.data = static_cast<char *>(bases[size_t(p.buffer)]) + size_t(p.offset) * bytes_of(element),
          .stride = {p.stride[0], p.stride[1], p.stride[2], p.stride[3]}};
}

template <typename Number> void set_array(const Number *&to, int buffer, const std::vector<void *> &bases) {
  if (buffer >= 0) to = static_cast<const Number *>(bases[size_t(buffer)]);
}

/// The members that both structs have.
template <typename Call>
void fill_common(const CopyCase &c, const CopyInputs &in, const CopyMemory &memory,
                 const std::vector<void *> &bases, Call &call) {
  call.flags = (c.wide ? uint32_t(SLUICE_PAGE_INDEX_64) : 0) | (c.v_in_k ? uint32_t(SLUICE_V_IN_K) : 0);
  call.kv_heads = c.heads;
  call.head_dim_qk = c.head_size.qk;
  call.head_dim_v = c.v_in_k ? 0 : c.head_size.v;
  call.page_size = c.page_size;
  call.page_count = in.pages;
  call.k_scale_kind = scale_kind(c.k_scale);
  call.v_scale_kind = scale_kind(c.v_scale);
  set_array(call.k_scale, memory.k_scale, bases);
  set_array(call.v_scale, memory.v_scale, bases);
}

} // namespace

CopyMemory make_memory(const CopyCase &c, const CopyInputs &in) {
  return Builder(c, in).build();
}

sluice_page_copy make_copy(const CopyCase &c, const CopyInputs &in, const CopyMemory &memory,
                           const std::vector<void *> &bases) {
  sluice_page_copy call;
  sluice_page_copy_init(&call, sizeof call);
  fill_common(c, in, memory, bases, call);
  call.source_type = c_type(c.source);
  call.target_type = c_type(c.target);
  call.source_k_pack = c.source_k_pack;
  call.target_k_pack = c.target_k_pack;
  call.k_source = tensor(memory.k_source, c.source, bases);
  call.k_target = tensor(memory.k_target, c.target, bases);
  if (!c.v_in_k) {
    call.v_source = tensor(memory.v_source, c.source, bases);
    call.v_target = tensor(memory.v_target, c.target, bases);
  }
  if (memory.pairs >= 0) call.pairs = bases[size_t(memory.pairs)];
  call.pair_count = int64_t(in.pairs.size() / 2);
  return call;
}

sluice_gather make_gather(const CopyCase &c, const CopyInputs &in, const CopyMemory &memory,
                          const std::vector<void *> &bases) {
  sluice_gather call;
  sluice_gather_init(&call, sizeof call);
  fill_common(c, in, memory, bases, call);
  call.cache_type = c_type(c.source);
  call.out_type = c_type(c.target);
  call.page_table_kind = c.moving == Moving::block ? SLUICE_PAGE_TABLE_BLOCK : SLUICE_PAGE_TABLE_CSR;
  call.k_pack = c.source_k_pack;
  call.batch = int32_t(in.lengths.size());
  call.tokens = int32_t(in.out_rows);
  call.k_cache = tensor(memory.k_source, c.source, bases);
  call.k_out = tensor(memory.k_target, c.target, bases);
  if (!c.v_in_k) {
    call.v_cache = tensor(memory.v_source, c.source, bases);
    call.v_out = tensor(memory.v_target, c.target, bases);
  }
  set_array(call.out_starts, memory.starts, bases);
  set_array(call.kv_lengths, memory.kv_lengths, bases);
  set_array(call.first_keys, memory.first_keys, bases);
  if (memory.page_table >= 0) call.page_table = bases[size_t(memory.page_table)];
  call.page_table_stride = memory.table_stride;
  set_array(call.page_starts, memory.page_starts, bases);
  return call;
}

std::vector<MovedElement> compute_expected(const CopyCase &c, const CopyInputs &in,
                                           const CopyMemory &memory) {
  std::vector<MovedElement> expected;
  const auto add = [&](const Placement &source, const Placement &target, int head_size,
                       const std::vector<double> &scales) {
    for (const MovedRow &row : in.rows)
      for (int h = 0; h < c.heads; ++h)
        for (int e = 0; e < head_size; ++e) {
          const int64_t from = source.at(row.from_page, row.from_row, h, e);
          const double value = load(c.source, memory.buffers[size_t(source.buffer)].data(), from),
                       scale = scales[size_t(h)];
          expected.push_back({target.buffer, target.at(row.to_page, row.to_row, h, e), from, source.buffer,
                              c.target == Element::fp8 ? value / scale : value * scale});
        }
  };
  add(memory.k_source, memory.k_target, c.head_size.qk, in.k_scale);
  if (!c.v_in_k) add(memory.v_source, memory.v_target, c.head_size.v, in.v_scale);
  return expected;
}

Comparison compare(const CopyCase &c, const std::vector<MovedElement> &expected, const CopyMemory &before,
                   const CopyMemory &after) {
  Comparison result;
  std::vector<std::vector<bool>> allowed;
  for (const std::vector<std::byte> &buffer : before.buffers)
    allowed.emplace_back(buffer.size());
  const size_t bytes = bytes_of(c.target);
  for (const MovedElement &element : expected) {
    for (size_t i = 0; i < bytes; ++i)
      allowed[size_t(element.buffer)][size_t(element.at) * bytes + i] = true;
    const std::byte *const got = after.buffers[size_t(element.buffer)].data();
    const bool is_k = element.buffer == before.k_target.buffer;
    const std::string where =
        std::string(is_k ? "K" : "V") + "'s target, element " + std::to_string(element.at);
    if (c.source == c.target) {
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
