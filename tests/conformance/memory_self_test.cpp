//===- memory_self_test.cpp - ragged sequences and pages are where the header says ----------------------===//
//
// The test locates elements through the structs of the C ABI only, by the header's own rules; everything else
// must be poison, and page numbers that no sequence needs must be invalid.
//
//===----------------------------------------------------------------------------------------------------===//
#include "abi/attention_values.h"
#include "conformance/attention/call.h"
#include "conformance/attention/case_elements.h"
#include "conformance/attention/scores/scores.h"
#include "perfect.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <set>

using namespace sluice::conformance;
namespace calls = sluice::calls;

namespace {

/// A call over the host's copy of a case's memory.
struct Call {
  explicit Call(const Case &of) : c(of), in(make_inputs(c)), memory(make_memory(c, in)), sequences(c) {
    make_problem(c, structs);
    attention = sluice::abi::flat_attention(&structs.attention);
    for (std::vector<std::byte> &buffer : memory.buffers)
      bases.push_back(buffer.data());
    args = args_of({});
  }
  /// What the library makes of the call, for all sequences or for one.
  calls::Args args_of(std::optional<int> only) const {
    CallStructs told;
    make_call(c, memory, bases, told, only);
    calls::Args out;
    sluice::abi::flat_args(attention, &told.args, out);
    return out;
  }
  int64_t page(int b, int j, int h = 0) const {
    const int64_t n = j / problem.page_size + h * args.page_table_head_stride;
    const int64_t entry = args.page_starts ? args.page_starts[b] + n : b * args.page_table_stride + n;
    return problem.flags & calls::page_index_64 ? static_cast<const int64_t *>(args.page_table)[entry]
                                                : static_cast<const int32_t *>(args.page_table)[entry];
  }
  int64_t k_index(int b, int j, int h, int e, const sluice_tensor &tensor, int pack) const {
    int64_t outer = b, inner = j;
    if (problem.mode == calls::paged) {
      outer = page(b, j, h);
      inner = j % problem.page_size;
    } else if (args.kv_starts) {
      outer = 0;
      inner = args.kv_starts[b] + j;
    }
    if (&tensor == &args.v && problem.v_pack != 0 && problem.v_pack != SLUICE_PACK_ALL)
      return outer * tensor.stride[0] + inner / problem.v_pack * tensor.stride[1] + h * tensor.stride[2] +
             e * tensor.stride[3] + inner % problem.v_pack;
    const int64_t row = outer * tensor.stride[0] + inner * tensor.stride[1] + h * tensor.stride[2];
    return pack ? row + e / pack * tensor.stride[3] + e % pack : row + e * tensor.stride[3];
  }

  const Case c;
  const Inputs in;
  Memory memory;
  const Sequences sequences;
  ProblemStructs structs;
  sluice::abi::FlatAttention attention;
  const calls::Problem &problem = attention.problem;
  std::vector<void *> bases;
  calls::Args args;
};

double element(const Case &c, const void *data, int64_t index) {
  if (has_byte_cache(c)) return load(cache_element(c), static_cast<const std::byte *>(data), index);
  return decode(c.dtype == Dtype::f16 ? f16_format : bf16_format, static_cast<const uint16_t *>(data)[index]);
}

} // namespace

TEST_CASE("keys and values are found by the header's rules, and nothing else is a number") {
  std::vector<Case> cases;
  for (Rows rows : {Rows::starts, Rows::gaps})
    for (Layout layout : {Layout::bshd, Layout::bhsd, Layout::padded, Layout::capacity})
      cases.push_back({.layout = layout, .mode = Mode::ragged, .lengths = Lengths::mixed, .rows = rows});
  for (Layout layout : {Layout::bshd, Layout::bhsd, Layout::sbhd, Layout::packed, Layout::padded,
                        Layout::capacity, Layout::broadcast})
    for (bool csr : {false, true})
      for (bool wide : {false, true})
        for (bool x_packed : {false, true})
          cases.push_back({.layout = layout,
                           .mode = Mode::paged,
                           .lengths = Lengths::mixed,
                           .rows = wide ? Rows::gaps : Rows::lengths,
                           .pages = {.size = 4,
                                     .csr = csr,
                                     .wide = wide,
                                     .k_pack = x_packed,
                                     .missing = x_packed != wide,
                                     .by_head = wide},
                           .cache = csr ? Cache::same : Cache::e4m3fnuz,
                           .v_in_k = csr && wide});
  for (Layout layout : {Layout::bshd, Layout::sbhd, Layout::padded, Layout::capacity, Layout::broadcast})
    for (Columns columns : {Columns::packs, Columns::whole})
      for (Cache cache : {Cache::same, Cache::e4m3fnuz})
        for (Mode mode : {Mode::dense, Mode::paged})
          cases.push_back({.layout = layout,
                           .mode = mode,
                           .lengths = Lengths::mixed,
                           .rows = Rows::lengths,
                           .pages = {.size = 32},
                           .cache = cache,
                           .v_columns = columns});
  for (Case c : cases) {
    c.head_size = {80, 48};
    c.batch = 5;
    c.q_heads = 4;
    c.kv_heads = 2;
    c.q_len = 9;
    c.kv_len = 14;
    c = named(meaningful(c));
    CAPTURE(c.name);
    const Call call(c);
    std::set<std::pair<const void *, int64_t>> places;
    for (int b = 0; b < c.batch; ++b)
      for (int j = 0; j < call.sequences.kv_lengths[size_t(b)]; ++j)
        for (int h = 0; h < c.kv_heads; ++h) {
          if (c.mode == Mode::paged)
            REQUIRE((call.page(b, j, h) < 0) == is_missing(c, b, h, j / c.pages.size));
          if (c.mode == Mode::paged && is_missing(c, b, h, j / c.pages.size)) continue;
          const size_t token = (size_t(b) * c.kv_len + j) * c.kv_heads + h;
          for (int e = 0; e < 80; ++e) {
            const int64_t at = call.k_index(b, j, h, e, call.args.k, call.problem.k_pack);
            const bool is_new = places.insert({call.args.k.data, at}).second;
            if (c.layout != Layout::broadcast) REQUIRE(is_new);
            REQUIRE(element(c, call.args.k.data, at) == call.in.k[token * 80 + e]);
          }
          for (int e = 0; e < 48 && !c.v_in_k; ++e) {
            const int64_t at = call.k_index(b, j, h, e, call.args.v, 0);
            places.insert({call.args.v.data, at});
            REQUIRE(element(c, call.args.v.data, at) == call.in.v[token * 48 + e]);
          }
          for (int e = 0; e < 48 && c.v_in_k; ++e)
            REQUIRE(call.in.v[token * 48 + e] == call.in.k[token * 80 + e]);
        }
    // The rest of the buffers of K and V.
    size_t numbers = 0;
    for (int buffer :
         std::set<int>{call.memory.k.buffer, c.v_in_k ? call.memory.k.buffer : call.memory.v.buffer}) {
      const std::vector<std::byte> &bytes = call.memory.buffers[size_t(buffer)];
      for (size_t i = 0; i < bytes.size() / cache_bytes(c); ++i)
        numbers += std::isfinite(element(c, bytes.data(), int64_t(i)));
    }
    CHECK(numbers == places.size());
  }
}

TEST_CASE("entries of a page table that no sequence needs lead out of the cache") {
  for (bool csr : {false, true})
    for (bool wide : {false, true}) {
      const Case c = named(meaningful({.batch = 5,
                                       .q_len = 3,
                                       .kv_len = 30,
                                       .mode = Mode::paged,
                                       .lengths = Lengths::mixed,
                                       .rows = Rows::lengths,
                                       .pages = {.size = 4, .csr = csr, .wide = wide}}));
      const Call call(c);
      std::set<int64_t> needed;
      for (int b = 0; b < c.batch; ++b)
        for (int j = 0; j < call.sequences.kv_lengths[size_t(b)]; j += 4)
          CHECK(needed.insert(call.page(b, j)).second);
      const std::vector<std::byte> &table = call.memory.buffers[size_t(call.memory.page_table)];
      const size_t entries = table.size() / (wide ? 8 : 4);
      const auto elements = int64_t(call.memory.buffers[size_t(call.memory.k.buffer)].size() / 2);
      size_t within = 0;
      for (size_t i = 0; i < entries; ++i) {
        const int64_t page = wide ? reinterpret_cast<const int64_t *>(table.data())[i]
                                  : reinterpret_cast<const int32_t *>(table.data())[i];
        within += page * call.args.k.stride[0] < elements;
      }
      CHECK(within == needed.size());
      CHECK(entries > needed.size());
      // Shuffled: the pages do not follow one another.
      CHECK(*needed.rbegin() + 1 - *needed.begin() >= int64_t(needed.size()));
      CHECK(call.page(0, 4) != call.page(0, 0) + 1);
    }
}

TEST_CASE("entries of pages in front of all windows lead nowhere, but those of sink tokens") {
  for (const bool csr : {false, true})
    for (const bool wide : {false, true})
      for (const int sinks : {0, 1, 4, 5}) {
        const Case c = named(meaningful({.batch = 3,
                                         .q_len = 3,
                                         .kv_len = 40,
                                         .mask = Mask::bottom_right,
                                         .mode = Mode::paged,
                                         .pages = {.size = 4, .csr = csr, .wide = wide},
                                         .window_left = 9,
                                         .sink_tokens = sinks}));
        CAPTURE(c.name);
        const Call call(c);
        const auto elements = int64_t(call.memory.buffers[size_t(call.memory.k.buffer)].size() / 2);
        std::set<int64_t> poison;
        for (int b = 0; b < c.batch; ++b)
          for (int j = 0; j < 40; ++j) {
            // Row 0 of 3 sees keys 28 to 37.
            const bool is_needed = j >= 28 || j / 4 * 4 < sinks;
            const int64_t page = call.page(b, j), place = page * call.args.k.stride[0];
            CHECK((page >= 0 && place < elements) == is_needed);
            if (!is_needed) poison.insert(page);
          }
        CHECK(poison.contains(-1));
        CHECK(poison.size() > 1);
      }
}

TEST_CASE("rows between and after sequences are not elements of an output") {
  for (Mode mode : {Mode::ragged, Mode::paged, Mode::dense}) {
    const Case c = named(meaningful({.batch = 4,
                                     .q_heads = 2,
                                     .kv_heads = 2,
                                     .q_len = 6,
                                     .kv_len = 9,
                                     .mode = mode,
                                     .lengths = Lengths::mixed,
                                     .rows = Rows::gaps,
                                     .pages = {.size = 4}}));
    const Call call(c);
    std::set<int64_t> rows;
    for (int b = 0; b < c.batch; ++b)
      for (int i = 0; i < call.args.q_lengths[b]; ++i)
        rows.insert(call.args.q_starts ? call.args.q_starts[b] + i : b * 6 + i);
    const int64_t row_bytes = call.args.o.stride[1] * 2;
    const auto all_rows = int64_t(call.memory.buffers[size_t(call.memory.o.buffer)].size()) / row_bytes;
    CHECK(all_rows > int64_t(rows.size()));
    if (call.args.q_starts) CHECK(all_rows > call.args.q_starts[c.batch]);
    for (int64_t row = 0; row < all_rows; ++row) {
      Memory after = call.memory;
      after.buffers[size_t(after.o.buffer)][size_t(row * row_bytes + 5)] ^= std::byte(1);
      CHECK(find_stray_write(c, call.memory, after).empty() == rows.contains(row));
    }
  }
}

TEST_CASE("elements of a bias or a mask outside the sequences are poison") {
  const Case c = named(meaningful({.batch = 3,
                                   .q_heads = 2,
                                   .q_len = 7,
                                   .kv_len = 13,
                                   .mode = Mode::ragged,
                                   .lengths = Lengths::mixed,
                                   .bits = {.given = true},
                                   .bias = {.type = BiasType::f32}}));
  const Call call(c);
  size_t pairs = 0, numbers = 0, hidden = 0, zeros = 0;
  for (int b = 0; b < c.batch; ++b)
    for (int h = 0; h < 2; ++h)
      for (int i = 0; i < call.sequences.q_lengths[size_t(b)]; ++i)
        for (int j = 0; j < call.sequences.kv_lengths[size_t(b)]; ++j, ++pairs) {
          const auto at = [&](const sluice_tensor &t, int column) {
            return b * t.stride[0] + h * t.stride[1] + i * t.stride[2] + column * t.stride[3];
          };
          CHECK(static_cast<const float *>(call.args.bias.data)[at(call.args.bias, j)] ==
                call.in.changes[scores::bias].matrix.at(b, h, i, j));
          const int bit =
              static_cast<const uint8_t *>(call.args.mask.data)[at(call.args.mask, j / 8)] >> j % 8 & 1;
          CHECK(bit == call.in.changes[scores::mask_bits].matrix.at(b, h, i, j));
          hidden += bit == 0;
        }
  for (const std::vector<std::byte> *bytes :
       {&call.memory.buffers[size_t(call.memory.changes[scores::bias].matrix.buffer)]})
    for (size_t i = 0; i < bytes->size() / 4; ++i)
      numbers += std::isfinite(reinterpret_cast<const float *>(bytes->data())[i]);
  CHECK(numbers == pairs);
  for (std::byte byte : call.memory.buffers[size_t(call.memory.changes[scores::mask_bits].matrix.buffer)])
    zeros += size_t(8 - std::popcount(uint8_t(byte)));
  CHECK(zeros == hidden);
}

TEST_CASE("a single sequence uses the same memory") {
  for (Mode mode : {Mode::dense, Mode::ragged, Mode::paged}) {
    const Case c = named(meaningful({.batch = 4,
                                     .q_heads = 2,
                                     .q_len = 5,
                                     .kv_len = 20,
                                     .mode = mode,
                                     .lengths = Lengths::chunked,
                                     .rows = Rows::gaps,
                                     .pages = {.size = 4, .wide = true},
                                     .bits = {.given = true},
                                     .bias = {.type = BiasType::f16}}));
    const Call call(c);
    for (int b = 0; b < c.batch; ++b) {
      const calls::Args single = call.args_of(b);
      CHECK(single.batch == 1);
      const auto address = [](const sluice_tensor &t, int64_t sequence, int64_t row, int bytes) {
        return static_cast<const char *>(t.data) + (sequence * t.stride[0] + row * t.stride[1]) * bytes;
      };
      const bool starts = call.args.q_starts != nullptr;
      CHECK(address(single.q, 0, starts ? single.q_starts[0] : 0, 2) ==
            address(call.args.q, starts ? 0 : b, starts ? call.args.q_starts[b] : 0, 2));
      CHECK(address(single.o, 0, 0, 2) == address(call.args.o, starts ? 0 : b, 0, 2));
      CHECK(address(single.bias, 0, 0, 2) == address(call.args.bias, b, 0, 2));
      CHECK(address(single.mask, 0, 0, 1) == address(call.args.mask, b, 0, 1));
      CHECK(single.kv_lengths[0] == call.args.kv_lengths[b]);
      if (mode == Mode::paged) {
        CHECK(single.k.data == call.args.k.data);
        CHECK(static_cast<const int64_t *>(single.page_table)[0] == call.page(b, 0));
      }
    }
  }
}

TEST_CASE("tensors are aligned as the header asks of a device's, also for single sequences") {
  const std::vector<Case> cases = feature_cases({{{Dtype::f16, 64}, {Dtype::bf16, {192, 128}}}});
  for (size_t n = 0; n < cases.size(); n += 4) {
    const Case &c = cases[n];
    CAPTURE(c.name);
    const Call call(c);
    for (int b = -1; b < c.batch; ++b) {
      const calls::Args args = b < 0 ? call.args : call.args_of(b);
      auto check = [&](const sluice_tensor &tensor, const Placement &placement) {
        if (!tensor.data) return;
        const auto offset =
            static_cast<const char *>(tensor.data) - static_cast<const char *>(call.bases[placement.buffer]);
        const bool has_scales_between = c.cache == Cache::q8_0 || c.cache == Cache::q4_0;
        const bool is_cache = &placement == &call.memory.k || &placement == &call.memory.v;
        CHECK(offset % (is_cache && has_scales_between ? 2 : 16) == 0);
        const bool by_columns = &placement == &call.memory.v && c.v_columns != Columns::none;
        for (int dim = 0; dim < 3; ++dim)
          CHECK(tensor.stride[dim] % (dim == 1 && c.v_columns == Columns::whole && by_columns ? 1 : 8) == 0);
        const bool has_packs = placement.pack != 0 || by_columns;
        CHECK((tensor.stride[3] == 1 || (has_packs && tensor.stride[3] % 8 == 0)));
      };
      check(args.q, call.memory.q);
      check(args.k, call.memory.k);
      check(args.v, call.memory.v);
      check(args.o, call.memory.o);
    }
  }
}
