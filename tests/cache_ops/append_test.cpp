//===- append_test.cpp - new rows of K and V are appended to a paged cache ------------------------------===//
#include "cache_ops/append_case.h"

#include <numeric>

using namespace sluice::test;

namespace {

constexpr uint32_t tables[] = {SLUICE_PAGE_TABLE_NONE, SLUICE_PAGE_TABLE_BLOCK, SLUICE_PAGE_TABLE_CSR};

struct Types {
  uint32_t source, cache;
};
constexpr Types all_types[] = {{SLUICE_F16, SLUICE_F16},
                               {SLUICE_BF16, SLUICE_BF16},
                               {SLUICE_F16, SLUICE_E4M3FNUZ},
                               {SLUICE_BF16, SLUICE_E4M3FNUZ}};

/// Sequences with and without new rows and keys, some of them at page boundaries.
AppendCase several_sequences() {
  AppendCase c;
  c.new_rows = {0, 3, 1, 0, 0, 7, 2, 0};
  c.old_keys = {4, 2, 0, 0, 9, 13, 16, 1};
  c.pages = 64;
  return c;
}

} // namespace

TEST_CASE("rows reach their slots, and nothing else is touched", "[append]") {
  uint64_t seed = 1;
  for (const Types types : all_types)
    for (const uint32_t table : tables)
      for (const int page_size : {1, 3, 16, 64}) {
        AppendCase c = several_sequences();
        c.source = types.source;
        c.cache = types.cache;
        c.table = table;
        c.page_size = page_size;
        c.wide_entries = table != SLUICE_PAGE_TABLE_NONE && page_size % 2 != 0;
        c.gap = page_size == 3 ? 8 : 0;
        c.seed = seed++;
        check_append(c);
        if (table != SLUICE_PAGE_TABLE_NONE) {
          c.wide_entries = !c.wide_entries;
          c.first_row = 2; // rows before the first sequence and after the last belong to no sequence
          c.rows_behind = 3;
          check_append(c);
        }
      }
}

TEST_CASE("a cache can be x-packed", "[append]") {
  for (const Types types : all_types)
    for (const uint32_t table : tables)
      for (const int page_size : {1, 16}) {
        AppendCase c = several_sequences();
        c.source = types.source;
        c.cache = types.cache;
        c.table = table;
        c.page_size = page_size;
        c.head_dim_qk = 48;
        c.k_pack = types.cache == SLUICE_E4M3FNUZ ? 16 : 8;
        c.seed = 100 + uint64_t(page_size);
        check_append(c);
        c.k_pack = 24;
        check_append(c);
      }
}

TEST_CASE("K is rotated on its way", "[append]") {
  struct Rotation {
    int head_dim, dim;
  };
  uint64_t seed = 200;
  for (const Types types : all_types)
    for (const uint32_t style : {SLUICE_ROTARY_HALVES, SLUICE_ROTARY_PAIRS})
      for (const Rotation rotation : {Rotation{64, 64}, Rotation{64, 32}, Rotation{40, 40}, Rotation{24, 10},
                                      Rotation{16, 2}, Rotation{16, 16}, Rotation{32, 24}})
        for (const bool positions : {false, true}) {
          AppendCase c = several_sequences();
          c.source = types.source;
          c.cache = types.cache;
          c.table = positions ? SLUICE_PAGE_TABLE_NONE : SLUICE_PAGE_TABLE_CSR;
          c.head_dim_qk = rotation.head_dim;
          c.rotary_dim = rotation.dim;
          c.rotary_style = style;
          c.positions = positions;
          c.seed = seed++;
          check_append(c);
        }
}

TEST_CASE("positions given with sequences replace the keys' numbers", "[append]") {
  AppendCase c = several_sequences();
  c.table = SLUICE_PAGE_TABLE_BLOCK;
  c.rotary_dim = 16;
  c.positions = true;
  check_append(c);
}

TEST_CASE("V may be a part of K", "[append]") {
  for (const Types types : all_types) {
    AppendCase c = several_sequences();
    c.source = types.source;
    c.cache = types.cache;
    c.table = SLUICE_PAGE_TABLE_BLOCK;
    c.heads = 1;
    c.head_dim_qk = 576; // more chunks than a wave has lanes, and not a power of two
    c.head_dim_v = 0;
    c.rotary_dim = 64;
    c.rotary_style = SLUICE_ROTARY_PAIRS;
    check_append(c);
  }
}

TEST_CASE("rows of all widths", "[append]") {
  for (const int heads : {1, 3, 5, 8, 33})
    for (const int head_dim : {8, 24, 128}) {
      AppendCase c = several_sequences();
      c.table = SLUICE_PAGE_TABLE_CSR;
      c.heads = heads;
      c.head_dim_qk = head_dim;
      c.head_dim_v = head_dim == 24 ? 8 : 24; // K or V has more
      c.seed = uint64_t(heads);
      check_append(c);
    }
}

TEST_CASE("more chunks and rows than the grid takes at a time", "[append]") {
  AppendCase wide;
  wide.heads = 1100; // of 128: 17600 chunks, the grid takes 16384
  wide.head_dim_qk = 128;
  wide.head_dim_v = 8;
  wide.new_rows = {3};
  wide.pages = 1;
  check_append(wide);

  // One chunk per row: 256 rows in each of the 16 * 304 / 2 workgroups for K and for V.
  AppendCase narrow;
  narrow.heads = 1;
  narrow.head_dim_qk = narrow.head_dim_v = 8;
  narrow.new_rows = {256 * 16 * 304 / 2 + 300};
  narrow.page_size = 4096;
  narrow.pages = narrow.new_rows[0] / narrow.page_size + 1;
  check_append(narrow);
}

TEST_CASE("many sequences of one new row, as decoding has", "[append]") {
  for (const int batch : {1, 2, 3, 4, 63, 64, 65, 200}) {
    AppendCase c;
    c.table = SLUICE_PAGE_TABLE_CSR;
    c.new_rows.assign(size_t(batch), 1);
    c.old_keys.clear();
    for (int b = 0; b < batch; ++b)
      c.old_keys.push_back(b % 7);
    c.pages = 3 * batch;
    c.seed = uint64_t(batch);
    check_append(c);
  }
}
