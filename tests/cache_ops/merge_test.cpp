//===- merge_test.cpp - results of attention over parts of the keys are merged into one -----------------===//
//
// Against merge_oracle.h.
//
//===----------------------------------------------------------------------------------------------------===//
#include "cache_ops/device.h"
#include "cache_ops/merge_oracle.h"

#include <functional>

using namespace sluice::test;

namespace {

const double nan_value = std::nan("");

struct MergeCase {
  uint32_t partial = SLUICE_F32, o = SLUICE_F16;
  int parts = 3, tokens = 5, heads = 3, dim = 64;
  uint32_t base = SLUICE_LSE_BASE_E;
  bool lse = true, sinks = false;
  int gap = 0;           // elements between heads and parts, a multiple of 8; if 0, LSEs have no gaps either
  bool in_place = false; // o is the last part's rows, lse its LSEs
  uint64_t seed = 1;
  /// The LSE of a part and row (token * heads + head), drawn unless this overrides it.
  std::function<double(int part, int row, double drawn)> lse_of = [](int, int, double drawn) {
    return drawn;
  };
  /// An element of a part.
  std::function<double(int part, int row, int e, double drawn)> element_of = [](int, int, int, double drawn) {
    return drawn;
  };
};

void check_layout(const MergeCase &c) {
  INFO("from " << c.partial << " to " << c.o << ", " << c.parts << " parts, " << c.tokens << " tokens, "
               << c.heads << " heads of " << c.dim << ", base " << c.base << ", lse " << c.lse << ", sinks "
               << c.sinks << ", gap " << c.gap << ", in place " << c.in_place << ", seed " << c.seed);
  Numbers numbers(c.seed);
  const int rows = c.tokens * c.heads;
  const int64_t head = c.dim + c.gap, token = c.heads * head, part = c.tokens * token + c.gap;
  const uint32_t partial_bytes = bytes_of(c.partial), o_bytes = bytes_of(c.o);
  // Gaps are NaN; elements that are not written must keep their values.
  Visible<uint8_t> partial(std::vector<uint8_t>(
      size_t((c.parts - 1) * part + (c.tokens - 1) * token + (c.heads - 1) * head + c.dim) * partial_bytes,
      0xff));
  const int64_t lse_gap = c.gap / 8, lse_token = c.heads + lse_gap,
                lse_part = c.tokens * lse_token + 2 * lse_gap;
  const auto float_nan = float(nan_value);
  Visible<float> partial_lse(size_t((c.parts - 1) * lse_part + (c.tokens - 1) * lse_token + c.heads),
                             float_nan);
  const auto partial_at = [&](int p, int row, int e) {
    return size_t(p * part + row / c.heads * token + row % c.heads * head + e) * partial_bytes;
  };
  const auto lse_at = [&](int p, int row) {
    return size_t(p * lse_part + row / c.heads * lse_token + row % c.heads);
  };
  for (int p = 0; p < c.parts; ++p)
    for (int row = 0; row < rows; ++row) {
      partial_lse[lse_at(p, row)] = float(c.lse_of(p, row, numbers.between(-4, 4)));
      for (int e = 0; e < c.dim; ++e)
        write_element(c.partial, &partial[partial_at(p, row, e)],
                      c.element_of(p, row, e, numbers.between(-3, 3)));
    }
  std::vector<float> sink_values(size_t(c.heads), 0);
  for (size_t h = 0; h < sink_values.size(); ++h)
    sink_values[h] = h == 1 ? -std::numeric_limits<float>::infinity() : float(numbers.between(-3, 3));
  Visible<float> sinks(sink_values);
  const std::vector<uint8_t> partial_before = partial.copy();
  const std::vector<float> lse_before = partial_lse.copy();

  // The output has strides of its own, [head][token].
  const int64_t o_token = c.in_place ? token : c.dim + 8, o_head = c.in_place ? head : c.tokens * o_token;
  const size_t o_elements =
      c.in_place ? 8 : size_t((c.heads - 1) * o_head + (c.tokens - 1) * o_token + c.dim);
  Visible<uint8_t> o(o_elements * o_bytes, uint8_t(0xa5));
  Visible<float> lse(size_t(rows), 77.0f);
  const int last = c.parts - 1;

  sluice_merge call;
  sluice_merge_init(&call, sizeof call);
  call.partial_type = c.partial;
  call.o_type = c.o;
  call.parts = c.parts;
  call.tokens = c.tokens;
  call.heads = c.heads;
  call.head_dim_v = c.dim;
  call.lse_base = c.base;
  call.partial = {partial.data(), {part, token, head, 1}};
  call.partial_lse = {partial_lse.data(), {lse_part, lse_token, 1, 0}};
  call.o = {o.data(), {0, o_token, o_head, 1}};
  if (c.in_place) call.o.data = partial.data() + partial_at(last, 0, 0);
  if (c.lse) call.lse = {lse.data(), {0, 1, c.tokens, 0}};
  if (c.lse && c.in_place) call.lse = {partial_lse.data() + lse_at(last, 0), {0, lse_token, 1, 0}};
  if (c.sinks) call.sink_logits = sinks.data();
  run_on_device(call, sluice_merge_states);

  const double unit = c.base == SLUICE_LSE_BASE_E ? 1 : std::log(2.0);
  int wrong = 0;
  for (int row = 0; row < rows; ++row) {
    std::vector<double> lses;
    for (int p = 0; p < c.parts; ++p)
      lses.push_back(double{lse_before[lse_at(p, row)]});
    const MergedRow expected(lses, unit, c.sinks ? sink_values[size_t(row % c.heads)] : -infinity);
    if (c.lse) {
      const double found =
          c.in_place ? partial_lse[lse_at(last, row)] : lse[size_t(row % c.heads * c.tokens + row / c.heads)];
      if (!expected.is_lse(found) && ++wrong <= 5)
        UNSCOPED_INFO("row " << row << ": LSE is " << found << " instead of " << expected.lse());
    }
    std::vector<double> values(lses.size());
    for (int e = 0; e < c.dim; ++e) {
      for (int p = 0; p < c.parts; ++p)
        values[size_t(p)] = read_element(c.partial, &partial_before[partial_at(p, row, e)]);
      const uint8_t *place = c.in_place
                                 ? &partial[partial_at(last, row, e)]
                                 : &o[size_t(row / c.heads * o_token + row % c.heads * o_head + e) * o_bytes];
      const double found = read_element(c.o, place);
      if (!expected.is_element(found, values, c.o) && ++wrong <= 5)
        UNSCOPED_INFO("row " << row << " element " << e << ": O is " << found << " instead of "
                             << expected.element(values));
    }
  }
  CHECK(wrong == 0);
  // Inputs and everything between the rows of O are unchanged.
  int touched = 0;
  std::vector<uint8_t> may(partial_before.size(), 0), o_may(o.size(), 0);
  for (int row = 0; row < rows; ++row)
    for (size_t byte = 0; byte < size_t(c.dim) * o_bytes; ++byte) {
      if (c.in_place)
        may[partial_at(last, row, 0) + byte] = 1;
      else
        o_may[size_t(row / c.heads * o_token + row % c.heads * o_head) * o_bytes + byte] = 1;
    }
  for (size_t i = 0; i < may.size(); ++i)
    touched += !may[i] && partial[i] != partial_before[i];
  for (size_t i = 0; i < o_may.size(); ++i)
    touched += !o_may[i] && o[i] != 0xa5;
  CHECK(touched == 0);
  if (!c.lse) CHECK(lse.copy() == std::vector<float>(size_t(rows), 77.0f));
}

/// Few adjacent parts are read at once, others step by step.
void check_merge(MergeCase c) {
  check_layout(c);
  if (c.gap != 0) return;
  c.gap = 8;
  check_layout(c);
}

/// O, in F32, and LSE of two rows in `all` parts, of which only the first `counting` count. They are the same
/// in all calls with equal widths. There are `gap` elements of O and of LSE between the parts.
std::pair<std::vector<uint8_t>, std::vector<float>> merge_first(int counting, int all, int dim, int gap = 0) {
  Numbers numbers{uint64_t(dim)};
  const int rows = 2;
  const int part = rows * dim + gap, lse_part = rows + gap;
  Visible<float> partial(size_t(all * part), 0.0f), partial_lse(size_t(all * lse_part), 0.0f);
  for (int p = 0; p < all; ++p)
    for (int row = 0; row < rows; ++row) {
      const auto drawn = float(numbers.between(-4, 4));
      partial_lse[size_t(p * lse_part + row)] =
          p < counting ? drawn : -std::numeric_limits<float>::infinity();
      for (int e = 0; e < dim; ++e)
        partial[size_t(p * part + row * dim + e)] = float(numbers.between(-3, 3));
    }
  Visible<uint8_t> o(size_t(rows * dim) * sizeof(float), uint8_t(0xa5));
  Visible<float> lse(size_t(rows), 77.0f);
  sluice_merge call;
  sluice_merge_init(&call, sizeof call);
  call.partial_type = call.o_type = SLUICE_F32;
  call.parts = all;
  call.tokens = rows;
  call.heads = 1;
  call.head_dim_v = dim;
  call.lse_base = SLUICE_LSE_BASE_E;
  call.partial = {partial.data(), {part, dim, dim, 1}};
  call.partial_lse = {partial_lse.data(), {lse_part, 1, 1, 0}};
  call.o = {o.data(), {0, dim, dim, 1}};
  call.lse = {lse.data(), {0, 1, 1, 0}};
  run_on_device(call, sluice_merge_states);
  return {o.copy(), lse.copy()};
}

struct Types {
  uint32_t partial, o;
};
constexpr Types all_types[] = {{SLUICE_F32, SLUICE_F32},  {SLUICE_F32, SLUICE_F16},
                               {SLUICE_F32, SLUICE_BF16}, {SLUICE_F32, SLUICE_E4M3FNUZ},
                               {SLUICE_F16, SLUICE_F16},  {SLUICE_BF16, SLUICE_BF16}};

/// Calls check for all types, bases, with and without sinks and LSE.
void check_all_ways(MergeCase c) {
  for (const Types types : all_types)
    for (const uint32_t base : {SLUICE_LSE_BASE_E, SLUICE_LSE_BASE_2})
      for (const int way : {0, 1, 2, 3}) {
        c.partial = types.partial;
        c.o = types.o;
        c.base = base;
        c.lse = way != 1;
        c.sinks = way >= 2;
        c.gap = way == 3 ? 8 : 0;
        ++c.seed;
        check_merge(c);
      }
}

} // namespace

TEST_CASE("any number of parts", "[merge]") {
  uint64_t seed = 1;
  for (int parts = 1; parts <= 64; parts += parts < 10 ? 1 : 9) {
    MergeCase c;
    c.parts = parts;
    c.seed = 10 * seed++;
    for (const Types types : all_types) {
      c.partial = types.partial;
      c.o = types.o;
      check_merge(c);
    }
  }
}

TEST_CASE("all types, both bases, with sinks and without", "[merge]") {
  check_all_ways({});
}

TEST_CASE("parts that do not count may hold anything", "[merge]") {
  MergeCase c;
  c.parts = 6;
  c.heads = 4;
  c.lse_of = [](int part, int row, double drawn) {
    // Row 0: all but one; rows 5, 9 and 13: none; the others: some.
    if (row == 5 || row == 9 || row == 13 || (row == 0 && part != 3) || (part + row) % 3 == 0)
      return -infinity;
    return drawn;
  };
  c.element_of = [&](int part, int row, int e, double drawn) {
    if (c.lse_of(part, row, 0) != -infinity) return drawn;
    return e % 3 == 0 ? infinity : nan_value;
  };
  check_all_ways(c);
}

TEST_CASE("NaN that counts stays in its row", "[merge]") {
  MergeCase c;
  c.parts = 5;
  c.lse_of = [](int part, int row, double drawn) {
    if (row == 2 && part == 4) return nan_value;
    if (row == 7) return part == 0 ? nan_value : -infinity; // the only one that counts
    if (row == 11 && part == 0) return nan_value;
    return drawn;
  };
  c.element_of = [](int part, int row, int e, double drawn) {
    return part == 1 && row == 4 && e == 17 ? nan_value : drawn;
  };
  check_all_ways(c);
}

TEST_CASE("LSEs far from 0 and from one another", "[merge]") {
  MergeCase c;
  c.parts = 9;
  for (const double shift : {-2000.0, -90.0, 90.0, 2000.0}) {
    c.lse_of = [=](int part, int row, double drawn) {
      return shift + (row % 3 == 0 ? 50.0 * part : row % 3 == 1 ? -30.0 * part : drawn);
    };
    check_all_ways(c);
  }
}

TEST_CASE("a single part is copied", "[merge]") {
  MergeCase c;
  c.partial = c.o = SLUICE_F32;
  c.parts = 4;
  c.lse_of = [](int part, int, double) { return part == 2 ? 123.456 : -infinity; };
  c.element_of = [](int, int row, int e, double) { return 1.0 / (1 + row + e); };
  check_merge(c);
}

TEST_CASE("o and lse may be the memory of a part", "[merge]") {
  for (const Types types : all_types) {
    if (types.partial != types.o) continue;
    for (const int dim : {8, 64, 128, 520}) {
      MergeCase c;
      c.partial = types.partial;
      c.o = types.o;
      c.dim = dim;
      c.gap = dim == 64 ? 16 : 0;
      c.in_place = true;
      c.parts = dim == 8 ? 1 : 7;
      check_merge(c);
    }
  }
}

TEST_CASE("rows of all widths", "[merge]") {
  for (const int dim : {8, 16, 24, 40, 72, 128, 256, 512, 520, 1048})
    for (const int heads : {1, 2, 7, 128}) {
      MergeCase c;
      c.dim = dim;
      c.heads = heads;
      c.tokens = heads == 128 ? 3 : 17;
      c.parts = 2;
      check_merge(c);
    }
  // A workgroup processes 2048 elements of a row at a time.
  for (const int dim : {2048, 2056, 4104})
    for (const int parts : {1, 6}) {
      MergeCase c;
      c.dim = dim;
      c.tokens = 2;
      c.parts = parts;
      check_merge(c);
    }
}

TEST_CASE("the maximum number of parts", "[merge]") {
  MergeCase c;
  c.parts = 65536;
  c.tokens = c.heads = 1;
  c.dim = 8;
  // Few of them are large, so that F32 adds them up as exactly as the oracle expects.
  c.lse_of = [](int part, int, double drawn) {
    return part % 4099 == 0 || part == 65535 ? drawn : -60 + drawn;
  };
  check_merge(c);
}

TEST_CASE("bits do not depend on how many parts follow without a weight", "[merge]") {
  // A batch-invariant plan has as many splits as its bound on the keys allows.
  for (const int dim : {8, 64, 128, 512})
    for (const int parts : {1, 2, 3, 4, 5, 7, 9, 17, 33, 70}) {
      std::vector<uint8_t> expected_o;
      std::vector<float> expected_lse;
      for (const int more : {0, 1, 3, 13, 60, 190}) {
        INFO(parts << " of " << parts + more << " parts, rows of " << dim);
        const auto [o, lse] = merge_first(parts, parts + more, dim);
        if (more == 0) {
          expected_o = o;
          expected_lse = lse;
        }
        CHECK(o == expected_o);
        CHECK(lse == expected_lse);
      }
    }
}

TEST_CASE("bits do not depend on whether the parts are read at once", "[merge]") {
  for (const int dim : {8, 40, 128, 512})
    for (const int parts : {1, 2, 4, 7, 16, 33}) {
      INFO(parts << " parts, rows of " << dim);
      CHECK(merge_first(parts, parts, dim) == merge_first(parts, parts, dim, 8));
    }
}

TEST_CASE("arguments come from memory where the firmware has not loaded them", "[merge]") {
  struct NoPreload {
    NoPreload() { REQUIRE(sluice_emulator_configure("preload_kernargs", "off") == SLUICE_EMULATOR_OK); }
    ~NoPreload() { sluice_emulator_configure("preload_kernargs", "on"); }
  } const no_preload;
  check_all_ways({});
}

TEST_CASE("more rows than the grid has along x", "[merge]") {
  MergeCase c;
  c.dim = 264; // 64 lanes each, so 4 rows in each of the 4096 workgroups along x
  c.partial = c.o = SLUICE_F16;
  c.parts = 1;
  c.heads = 5;
  c.tokens = (4 * 16 * 304 + 100) / 5;
  check_merge(c);
}
