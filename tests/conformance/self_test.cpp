//===- self_test.cpp - the suite must be right, and must notice errors ----------------------------------===//
//
// The oracle against closed forms, and the comparison against results with a known small defect each.
//
//===----------------------------------------------------------------------------------------------------===//
#include "perfect.h"

#include "conformance/shared/numbers.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <set>

using namespace sluice::conformance;

namespace {

const Shapes shipped_shapes = {{{Dtype::f16, 128}, {Dtype::f16, 64}, {Dtype::bf16, 128}, {Dtype::bf16, 64}}};

int visible_keys(const Case &c, int row) {
  const Sequences sequences(c);
  const Inputs none;
  int count = 0;
  for (int j = 0; j < c.kv_len; ++j)
    count += is_visible(c, sequences, none, 0, 0, row, j);
  return count;
}

} // namespace

TEST_CASE("16-bit floats round-trip and round to nearest even") {
  for (const NumberFormat &format : {f16_format, bf16_format})
    for (int bits = 0; bits < 0x10000; ++bits) {
      const double value = decode(format, uint16_t(bits));
      if (!std::isnan(value)) REQUIRE(encode(format, value) == bits);
    }
  CHECK(encode(f16_format, 1 + 0x1p-11) == 0x3c00);
  CHECK(encode(f16_format, 1 + 3 * 0x1p-11) == 0x3c02);
  CHECK(encode(f16_format, 65519.99) == 0x7bff);
  CHECK(encode(f16_format, 65520) == 0x7c00);
  CHECK(encode(f16_format, -0x1p-25) == 0x8000);
  CHECK(encode(bf16_format, 1 + 0x1p-8) == 0x3f80);
  CHECK(encode(bf16_format, 1 + 3 * 0x1p-8) == 0x3f82);
}

TEST_CASE("the oracle has the closed forms right") {
  SECTION("equal scores: O is the mean of V, LSE is ln n") {
    const Case c =
        named({.q_heads = 2, .kv_heads = 1, .q_len = 5, .kv_len = 37, .pattern = Pattern::uniform});
    const Inputs in = make_inputs(c);
    const Expected expected = compute_expected(c, in);
    for (int column = 0; column < c.head_size.qk; ++column) {
      double sum = 0;
      for (int j = 0; j < c.kv_len; ++j)
        sum += in.v[size_t(j) * c.head_size.qk + column];
      CHECK(expected.o[column] == Approx(sum / c.kv_len).epsilon(1e-13));
    }
    for (double lse : expected.lse)
      CHECK(lse == Approx(std::log(37.0)).epsilon(1e-14));
  }
  SECTION("one visible key: O is its V, LSE its score") {
    const Case c = named({.q_heads = 1, .q_len = 3, .kv_len = 40, .mask = Mask::top_left});
    const Inputs in = make_inputs(c);
    const Expected expected = compute_expected(c, in);
    double score = 0;
    for (int i = 0; i < c.head_size.qk; ++i) {
      CHECK(expected.o[i] == in.v[i]);
      score += in.q[i] * in.k[i];
    }
    CHECK(expected.lse[0] == Approx(score / std::sqrt(128.0)).epsilon(1e-13));
  }
  SECTION("a score far above the others takes all the weight") {
    const Case c = named({.q_len = 1, .kv_len = 3});
    Inputs in = make_inputs(c);
    for (int i = 0; i < c.head_size.qk; ++i) {
      in.q[i] = 1;
      in.k[c.head_size.qk + i] = 64;
    }
    const Expected expected = compute_expected(c, in);
    for (int i = 0; i < c.head_size.qk; ++i)
      CHECK(expected.o[i] == Approx(in.v[c.head_size.qk + i]).epsilon(1e-12));
  }
}

TEST_CASE("the masks are those of the header") {
  const Case longer_q = named({.q_len = 5, .kv_len = 3, .mask = Mask::bottom_right});
  const int expected_bottom_right[] = {0, 0, 1, 2, 3};
  for (int i = 0; i < 5; ++i)
    CHECK(visible_keys(longer_q, i) == expected_bottom_right[i]);
  const Case top_left = named({.q_len = 5, .kv_len = 3, .mask = Mask::top_left});
  const int expected_top_left[] = {1, 2, 3, 3, 3};
  for (int i = 0; i < 5; ++i)
    CHECK(visible_keys(top_left, i) == expected_top_left[i]);
  const Case shorter_q = named({.q_len = 2, .kv_len = 9, .mask = Mask::bottom_right});
  CHECK(visible_keys(shorter_q, 0) == 8);
  CHECK(visible_keys(shorter_q, 1) == 9);
  const Expected rows = compute_expected(longer_q, make_inputs(longer_q));
  CHECK(rows.lse[1] == -std::numeric_limits<double>::infinity());
  CHECK(rows.o[128 + 5] == 0);
}

TEST_CASE("the comparison passes correct results and notices wrong ones") {
  for (Dtype dtype : {Dtype::f16, Dtype::bf16}) {
    const Case c = named({.dtype = dtype,
                          .q_heads = 2,
                          .kv_heads = 1,
                          .q_len = 130,
                          .kv_len = 100,
                          .mask = Mask::bottom_right});
    const Inputs in = make_inputs(c);
    const Expected expected = compute_expected(c, in);
    const Outputs good = perfect(c, expected);
    const Comparison pass = compare(c, expected, good, Judge::kernel);
    CHECK(pass.wrong == 0);
    CHECK(pass.o_ratio <= 0.51); // rounding the output is half of the bound or less
    CHECK(compare(c, expected, good, Judge::reference).wrong == 0);

    auto wrong = [&](auto change) {
      Outputs bad = good;
      change(bad);
      return compare(c, expected, bad, Judge::kernel).wrong;
    };
    const size_t last = good.o.size() - 1; // of a row that sees every key
    CHECK(wrong([&](Outputs &o) { o.o[last] = std::nan(""); }) == 1);
    CHECK(wrong([&](Outputs &o) { o.o[last] = INFINITY; }) == 1);
    CHECK(wrong([&](Outputs &o) { o.o[last] += 4 * expected.o_tolerance[last]; }) == 1);
    CHECK(wrong([&](Outputs &o) { o.lse.back() = std::nan(""); }) == 1);
    CHECK(wrong([&](Outputs &o) { o.lse.back() += 2 * expected.lse_tolerance.back(); }) == 1);
    // Rows 0 to 29 see no key: only 0 and -inf are accepted.
    CHECK(wrong([&](Outputs &o) { o.o[0] = 1e-30; }) == 1);
    CHECK(wrong([&](Outputs &o) { o.o[0] = std::nan(""); }) == 1);
    CHECK(wrong([&](Outputs &o) { o.lse[0] = -1e38; }) == 1);
    Outputs nearly = good;
    nearly.o[0] = 1e-30;
    CHECK(compare(c, expected, nearly, Judge::reference).wrong == 1);
  }
}

TEST_CASE("O as F32 is not rounded: its tolerance leaves out that rounding") {
  for (Dtype dtype : {Dtype::f16, Dtype::bf16}) {
    const Case rounded = named({.dtype = dtype, .q_len = 20, .kv_len = 100});
    Case c = rounded;
    c.o_f32 = true;
    const Inputs in = make_inputs(rounded);
    const Expected less = compute_expected(c, in), more = compute_expected(rounded, in);
    CHECK(less.o == more.o);
    CHECK(less.lse_tolerance == more.lse_tolerance);
    const double r = dtype == Dtype::f16 ? 0x1p-11 : 0x1p-8, s = dtype == Dtype::f16 ? 0x1p-25 : 0x1p-134;
    for (size_t i = 0; i < less.o.size(); ++i)
      REQUIRE(more.o_tolerance[i] - less.o_tolerance[i] ==
              Approx(r * (std::fabs(less.o[i]) + less.o_tolerance[i]) + s).epsilon(1e-6));
    // Errors of P hide a kernel's rounding error, but not if it is everywhere.
    CHECK(compare(c, less, perfect(c, less), Judge::kernel).wrong == 0);
    CHECK(compare(c, less, perfect(rounded, less), Judge::kernel).wrong == 1);
    // The reference has only the error of its own type.
    CHECK(compare(c, less, perfect(c, less), Judge::reference).wrong == 0);
    CHECK(compare(c, less, perfect(rounded, less), Judge::reference).wrong > less.o.size() / 2);
  }
}

TEST_CASE("a kernel that treats one key wrongly is noticed at every length") {
  for (Dtype dtype : {Dtype::f16, Dtype::bf16})
    for (int kv_len : {2, 65, 257, 1000}) {
      const Case c = named({.dtype = dtype, .q_len = 4, .kv_len = kv_len});
      Case shorter = c; // the same numbers without the last key
      shorter.kv_len = kv_len - 1;
      Inputs in = make_inputs(c);
      const Expected expected = compute_expected(c, in);
      Inputs without = in;
      without.k.resize(without.k.size() - c.head_size.qk);
      without.v.resize(without.v.size() - c.head_size.v);
      CHECK(compare(c, expected, perfect(shorter, compute_expected(shorter, without)), Judge::kernel).wrong >
            0);
      // V's last two rows exchanged: LSE is right, O is not.
      std::swap_ranges(in.v.end() - c.head_size.v, in.v.end(), in.v.end() - 2 * c.head_size.v);
      CHECK(compare(c, expected, perfect(c, compute_expected(c, in)), Judge::kernel).wrong > 0);
    }
}

TEST_CASE("memory holds each layout, poisons the rest, and stray writes are found") {
  for (Layout layout : {Layout::bshd, Layout::bhsd, Layout::sbhd, Layout::packed, Layout::padded,
                        Layout::capacity, Layout::broadcast})
    for (bool o_f32 : {false, true}) {
      const Case c = named({.head_size = 64,
                            .batch = 2,
                            .q_heads = 4,
                            .kv_heads = 2,
                            .q_len = 9,
                            .kv_len = 9,
                            .layout = layout,
                            .o_f32 = o_f32});
      const Inputs in = make_inputs(c);
      const Memory memory = make_memory(c, in);
      // No two elements of Q overlap, and each holds its value.
      std::set<int64_t> places;
      const auto *const q = reinterpret_cast<const uint16_t *>(memory.buffers[memory.q.buffer].data());
      size_t i = 0;
      for (int b = 0; b < 2; ++b)
        for (int t = 0; t < 9; ++t)
          for (int h = 0; h < 4; ++h)
            for (int e = 0; e < 64; ++e, ++i) {
              const int64_t at = memory.q.offset + b * memory.q.stride[0] + t * memory.q.stride[1] +
                                 h * memory.q.stride[2] + e;
              REQUIRE(places.insert(at).second);
              REQUIRE(decode(f16_format, q[at]) == in.q[i]);
            }
      if (layout == Layout::padded || layout == Layout::capacity)
        for (size_t at = 0; at < memory.buffers[memory.q.buffer].size() / 2; ++at)
          if (!places.count(int64_t(at))) REQUIRE(!std::isfinite(decode(f16_format, q[at])));

      // Writing every element of O and LSE is fine; one byte more is not.
      Memory after = memory;
      CHECK(find_stray_write(c, memory, after).empty());
      for (std::byte &byte : after.buffers[after.o.buffer])
        byte = std::byte(1);
      for (std::byte &byte : after.buffers[after.lse.buffer])
        byte = std::byte(1);
      const bool spare = layout == Layout::padded || layout == Layout::capacity;
      CHECK(find_stray_write(c, memory, after).empty() == !spare);
      Memory input_written = memory;
      input_written.buffers[memory.k.buffer].back() ^= std::byte(1);
      CHECK(find_stray_write(c, memory, input_written).find("an input's buffer") != std::string::npos);
    }
}

TEST_CASE("the suite has the coverage that it promises") {
  const std::vector<Case> cases = dense_cases(shipped_shapes);
  CHECK(cases.size() >= 1800);
  std::set<std::string> names;
  for (const Case &c : cases)
    CHECK(names.insert(c.name).second);

  auto some = [&](auto condition) { return std::any_of(cases.begin(), cases.end(), condition); };
  for (int length :
       {1, 2, 3, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256, 257, 511, 512, 513, 1000})
    for (Dtype dtype : {Dtype::f16, Dtype::bf16})
      for (int head_size : {64, 128})
        for (bool causal : {false, true}) {
          CAPTURE(length, int(dtype), head_size, causal);
          CHECK(some([&](const Case &c) {
            return c.q_len == length && c.kv_len == length && c.dtype == dtype && c.head_size == head_size &&
                   (c.mask != Mask::none) == causal;
          }));
        }
  for (int group : {1, 2, 4, 8})
    for (int batch : {1, 2, 3}) {
      CAPTURE(group, batch);
      CHECK(some([&](const Case &c) { return c.q_heads / c.kv_heads == group && c.batch == batch; }));
    }
  for (Mask mask : {Mask::none, Mask::bottom_right, Mask::top_left})
    for (Layout layout : {Layout::bshd, Layout::bhsd, Layout::sbhd, Layout::packed, Layout::padded,
                          Layout::capacity, Layout::broadcast}) {
      CAPTURE(int(mask), int(layout));
      CHECK(some([&](const Case &c) { return c.mask == mask && c.layout == layout; }));
    }
  for (Mask mask : {Mask::none, Mask::bottom_right, Mask::top_left}) {
    CHECK(some([&](const Case &c) { return c.mask == mask && c.q_len > c.kv_len && c.q_len > 1; }));
    CHECK(some([&](const Case &c) { return c.mask == mask && c.q_len < c.kv_len && c.q_len > 1; }));
  }
  CHECK(some([](const Case &c) { return visible_keys(c, 0) == 0; }));
}

TEST_CASE("a kernel of a new shape gets cases, and only existing kernels do") {
  const Shapes shapes = {{{Dtype::bf16, 96}, {Dtype::f16, 128}}};
  std::set<int> lengths_of_new;
  for (const Case &c : dense_cases(shapes)) {
    CHECK(std::count(shapes.all.begin(), shapes.all.end(), Shapes::Shape{c.dtype, c.head_size}) == 1);
    if (c.head_size == HeadSizes(96)) lengths_of_new.insert(c.kv_len);
  }
  CHECK(lengths_of_new.size() >= 22);
}
