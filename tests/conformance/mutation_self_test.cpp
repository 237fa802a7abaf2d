//===- mutation_self_test.cpp - every small defect of a feature is noticed ------------------------------===//
//
// For each feature, the result of a kernel that gets it slightly wrong: the oracle computes it for a case or
// inputs which differ in that one respect, and the comparison takes it as the kernel's result.
//
//===----------------------------------------------------------------------------------------------------===//
#include "conformance/attention/scores/scores.h"
#include "perfect.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <utility>

using namespace sluice::conformance;

namespace {

/// The comparison's verdict on a kernel that computes the case and inputs that `change` produces.
template <typename Change> size_t wrong_elements(const Case &c, Change change) {
  const Inputs in = make_inputs(c);
  const Expected expected = compute_expected(c, in);
  REQUIRE(compare(c, expected, perfect(c, expected), Judge::kernel).wrong == 0);
  REQUIRE(compare(c, expected, perfect(c, expected), Judge::reference).wrong == 0);
  Case changed = c;
  Inputs changed_in = in;
  change(changed, changed_in);
  const Outputs outputs = perfect(changed, compute_expected(changed, changed_in));
  return compare(c, expected, outputs, Judge::kernel).wrong;
}

Case with(Dtype dtype, Case c) {
  c.dtype = dtype;
  c.batch = std::max(c.batch, 2);
  c.q_heads = 4;
  c.kv_heads = 2;
  c.q_len = 40;
  c.kv_len = 150;
  return named(meaningful(std::move(c)));
}

} // namespace

TEST_CASE("a window, kept keys or a diagonal that is off by one is noticed") {
  for (Dtype dtype : {Dtype::f16, Dtype::bf16}) {
    const Case window = with(dtype, {.window_left = 30, .window_right = 10, .sink_tokens = 3});
    CHECK(wrong_elements(window, [](Case &c, Inputs &) { ++c.window_left; }) > 0);
    CHECK(wrong_elements(window, [](Case &c, Inputs &) { --c.window_left; }) > 0);
    CHECK(wrong_elements(window, [](Case &c, Inputs &) { ++c.window_right; }) > 0);
    CHECK(wrong_elements(window, [](Case &c, Inputs &) { --c.window_right; }) > 0);
    CHECK(wrong_elements(window, [](Case &c, Inputs &) { c.window_right = -1; }) > 0);
    CHECK(wrong_elements(window, [](Case &c, Inputs &) { ++c.sink_tokens; }) > 0);
    CHECK(wrong_elements(window, [](Case &c, Inputs &) { --c.sink_tokens; }) > 0);
    CHECK(wrong_elements(window, [](Case &c, Inputs &) { c.sink_tokens = 0; }) > 0);
    CHECK(wrong_elements(window, [](Case &c, Inputs &) { c.mask = Mask::none_top_left; }) > 0);
    const Case causal = with(dtype, {.mask = Mask::bottom_right});
    CHECK(wrong_elements(causal, [](Case &c, Inputs &) { c.mask = Mask::top_left; }) > 0);
    CHECK(wrong_elements(causal, [](Case &c, Inputs &) {
            c.mask = Mask::none;
            c.window_right = 1;
          }) > 0);
  }
}

TEST_CASE("a bit of the mask that is read wrongly is noticed") {
  for (Dtype dtype : {Dtype::f16, Dtype::bf16}) {
    const Case bits = with(dtype, {.bits = {.given = true}});
    CHECK(wrong_elements(bits, [](Case &c, Inputs &) { c.bits = {}; }) > 0);
    CHECK(wrong_elements(bits, [](Case &, Inputs &in) { // the bits of a byte in the other order
            for (size_t i = 0; i + 8 <= in.changes[scores::mask_bits].matrix.values.size(); i += 8)
              std::reverse(in.changes[scores::mask_bits].matrix.values.begin() + ptrdiff_t(i),
                           in.changes[scores::mask_bits].matrix.values.begin() + ptrdiff_t(i + 8));
          }) > 0);
    for (size_t dim = 0; dim < 3; ++dim)
      CHECK(wrong_elements(
                bits, [&](Case &, Inputs &in) { in.changes[scores::mask_bits].matrix.extent[dim] = 1; }) > 0);
    // A single key of a single row.
    CHECK(wrong_elements(bits, [](Case &, Inputs &in) {
            double &bit = in.changes[scores::mask_bits]
                              .matrix.values[in.changes[scores::mask_bits].matrix.values.size() - 7];
            bit = 1 - bit;
          }) > 0);
  }
}

TEST_CASE("a change of the scores that is left out or misplaced is noticed") {
  for (Dtype dtype : {Dtype::f16, Dtype::bf16}) {
    const Case cap = with(dtype, {.soft_cap = 5});
    CHECK(wrong_elements(cap, [](Case &c, Inputs &) { c.soft_cap = 0; }) > 0);
    CHECK(wrong_elements(cap, [](Case &c, Inputs &) { c.soft_cap = 5.1; }) > 0);

    const Case bias = with(dtype, {.bias = {.type = BiasType::f32}});
    CHECK(wrong_elements(bias, [](Case &c, Inputs &) { c.bias = {}; }) > 0);
    for (size_t dim = 0; dim < 4; ++dim)
      CHECK(wrong_elements(bias,
                           [&](Case &, Inputs &in) { in.changes[scores::bias].matrix.extent[dim] = 1; }) > 0);
    // Before the cap instead of after it.
    const Case both =
        with(dtype, {.pattern = Pattern::uniform, .soft_cap = 2, .bias = {.type = BiasType::f16}});
    CHECK(wrong_elements(both, [](Case &c, Inputs &in) {
            c.soft_cap = 0;
            for (double &value : in.changes[scores::bias].matrix.values)
              value = 2 * std::tanh(value / 2);
          }) > 0);
    const Case holes = with(dtype, {.bias = {.type = BiasType::bf16, .holes = true}});
    CHECK(wrong_elements(holes, [](Case &, Inputs &in) {
            for (double &value : in.changes[scores::bias].matrix.values)
              if (std::isinf(value)) value = 0;
          }) > 0);

    const Case alibi = with(dtype, {.mask = Mask::bottom_right, .alibi = true});
    CHECK(wrong_elements(alibi, [](Case &c, Inputs &in) {
            c.alibi = false;
            std::fill(in.changes[scores::alibi].heads.begin(), in.changes[scores::alibi].heads.end(), 0.0);
          }) > 0);
    CHECK(wrong_elements(alibi, [](Case &, Inputs &in) {
            std::swap(in.changes[scores::alibi].heads[0], in.changes[scores::alibi].heads[1]);
          }) > 0);
    // Distances from the other corner.
    const Case full_alibi = with(dtype, {.alibi = true});
    CHECK(wrong_elements(full_alibi, [](Case &c, Inputs &) { c.mask = Mask::none_top_left; }) > 0);
  }
}

TEST_CASE("a sink logit that is forgotten or counted twice is noticed") {
  for (Dtype dtype : {Dtype::f16, Dtype::bf16})
    for (bool base_2 : {false, true}) {
      const Case sinks = with(dtype, {.sink_logits = true, .lse_base_2 = base_2});
      CHECK(wrong_elements(sinks, [](Case &, Inputs &in) {
              std::fill(in.changes[scores::sink_logits].heads.begin(),
                        in.changes[scores::sink_logits].heads.end(),
                        -std::numeric_limits<double>::infinity());
            }) > 0);
      CHECK(wrong_elements(sinks, [](Case &, Inputs &in) {
              for (double &sink : in.changes[scores::sink_logits].heads)
                sink += std::log(2.0);
            }) > 0);
      CHECK(wrong_elements(sinks, [](Case &, Inputs &in) {
              std::swap(in.changes[scores::sink_logits].heads[0], in.changes[scores::sink_logits].heads[3]);
            }) > 0);
    }
  // The result of a row without a visible key is the sink only.
  const Case nothing = named({.q_len = 4, .kv_len = 2, .mask = Mask::bottom_right, .sink_logits = true});
  const Inputs in = make_inputs(nothing);
  const Expected expected = compute_expected(nothing, in);
  CHECK(expected.lse[0] == in.changes[scores::sink_logits].heads[0]);
  CHECK(expected.lse_tolerance[0] == 0);
  CHECK(wrong_elements(nothing, [](Case &, Inputs &other) {
          std::fill(other.changes[scores::sink_logits].heads.begin(),
                    other.changes[scores::sink_logits].heads.end(), -std::numeric_limits<double>::infinity());
        }) > 0);
}

TEST_CASE("a scale of another key, and one that is left out, is noticed") {
  for (Dtype dtype : {Dtype::f16, Dtype::bf16})
    for (Cache cache : {Cache::i8, Cache::e4m3fnuz, Cache::e4m3fnuz_as_q}) {
      const Pattern pattern = cache == Cache::e4m3fnuz_as_q ? Pattern::peaked : Pattern::normal;
      const Case scaled =
          with(dtype, {.pattern = pattern, .cache = cache, .k_scale = Scale::token, .v_scale = Scale::token});
      for (std::vector<double> Inputs::*scales : {&Inputs::k_scale, &Inputs::v_scale}) {
        CHECK(wrong_elements(scaled, [&](Case &, Inputs &in) { std::ranges::fill(in.*scales, 1.0); }) > 0);
        CHECK(wrong_elements(scaled, [&](Case &c, Inputs &in) {
                std::ranges::rotate(in.*scales, (in.*scales).begin() + c.kv_heads);
              }) > 0);
      }
    }
}

TEST_CASE("a mask of sequences or new rows that is off by one is noticed") {
  for (Dtype dtype : {Dtype::f16, Dtype::bf16}) {
    const Case spans = with(dtype, {.mask = Mask::bottom_right, .spans = true});
    CHECK(wrong_elements(spans, [](Case &c, Inputs &) { c.spans = false; }) > 0);
    const Case some = with(dtype, {.batch = 2, .causal_by_sequence = true});
    CHECK(wrong_elements(some, [](Case &c, Inputs &) { c.causal_by_sequence = false; }) > 0);
    CHECK(wrong_elements(some, [](Case &c, Inputs &) { c.mask = Mask::bottom_right; }) > 0);
    const Case given = with(dtype, {.mask = Mask::given});
    CHECK(wrong_elements(given, [](Case &c, Inputs &) { c.mask = Mask::bottom_right; }) > 0);
    const Case bits = with(dtype, {.bits = {.given = true, .new_rows = true}});
    CHECK(wrong_elements(bits, [](Case &c, Inputs &) { c.bits = {}; }) > 0);
    CHECK(wrong_elements(bits, [](Case &, Inputs &in) {
            std::ranges::rotate(in.changes[scores::mask_bits].matrix.values,
                                in.changes[scores::mask_bits].matrix.values.begin() + 1);
          }) > 0);
    const Case factors = with(dtype, {.bias = {.type = BiasType::f32, .scaled = true}});
    CHECK(wrong_elements(factors, [](Case &, Inputs &in) {
            std::ranges::fill(in.changes[scores::bias].heads, 1.0);
          }) > 0);
    const Case fp8 = with(dtype, {.o_fp8 = true, .o_scale = Scale::head});
    CHECK(wrong_elements(fp8, [](Case &, Inputs &in) { std::swap(in.o_scale[0], in.o_scale[1]); }) > 0);
  }
}

TEST_CASE("a key of a missing page that is seen, and one that is hidden for another, is noticed") {
  for (Dtype dtype : {Dtype::f16, Dtype::bf16})
    for (int size : {1, 16}) {
      const Case holes =
          with(dtype, {.mode = Mode::paged, .pages = {.size = size, .missing = true, .by_head = true}});
      CHECK(wrong_elements(holes, [](Case &c, Inputs &) { c.pages.missing = false; }) > 0);
      CHECK(wrong_elements(holes, [](Case &c, Inputs &) { c.pages.by_head = false; }) > 0);
      CHECK(wrong_elements(holes, [](Case &c, Inputs &) { ++c.pages.size; }) > 0);
    }
  // Nothing is left of a sequence without pages.
  const Case empty = named(meaningful(
      {.batch = 3, .q_len = 2, .kv_len = 40, .mode = Mode::paged, .pages = {.size = 1, .missing = true}}));
  const Expected expected = compute_expected(empty, make_inputs(empty));
  for (size_t row = 4; row < 6; ++row) {
    CHECK(expected.lse[row] == -std::numeric_limits<double>::infinity());
    CHECK(expected.o[row * 128] == 0);
  }
}

TEST_CASE("a factor that is left out or another head's is noticed") {
  for (Dtype dtype : {Dtype::f16, Dtype::bf16})
    for (Cache cache : {Cache::same, Cache::e4m3fnuz, Cache::e4m3fnuz_as_q}) {
      // O of few keys is not small relative to its terms, of which FP8 P keeps four bits.
      const Pattern pattern = cache == Cache::e4m3fnuz_as_q ? Pattern::peaked : Pattern::normal;
      const Case scaled = with(dtype, {.pattern = pattern,
                                       .cache = cache,
                                       .q_scale = Scale::head,
                                       .k_scale = Scale::head,
                                       .v_scale = Scale::head});
      for (std::vector<double> Inputs::*factors : {&Inputs::q_scale, &Inputs::k_scale, &Inputs::v_scale}) {
        CHECK(wrong_elements(scaled,
                             [&](Case &, Inputs &in) { (in.*factors).assign((in.*factors).size(), 1); }) > 0);
        CHECK(wrong_elements(scaled,
                             [&](Case &, Inputs &in) { std::swap((in.*factors)[0], (in.*factors)[1]); }) > 0);
      }
    }
}

TEST_CASE("FP8 of another kind is noticed") {
  for (Dtype dtype : {Dtype::f16, Dtype::bf16})
    for (const auto &[pattern, cache] :
         {std::pair{Pattern::normal, Cache::e4m3fnuz}, std::pair{Pattern::codes, Cache::e4m3fnuz},
          std::pair{Pattern::normal, Cache::e4m3fnuz_as_q}}) {
      const Case fp8 = with(dtype, {.pattern = pattern, .cache = cache});
      // E4M3FN has the bias 7: twice the number.
      for (std::vector<double> Inputs::*tensor : {&Inputs::k, &Inputs::v})
        CHECK(wrong_elements(fp8, [&](Case &, Inputs &in) {
                for (double &value : in.*tensor)
                  value *= 2;
              }) > 0);
      // The largest numbers clamped to less: only one pattern has them.
      if (pattern == Pattern::codes)
        CHECK(wrong_elements(fp8, [](Case &, Inputs &in) {
                for (double &value : in.v)
                  if (std::fabs(value) >= 224) value = 224 * (value < 0 ? -1 : 1);
              }) > 0);
    }
}

TEST_CASE("NaN appears where it must, and nowhere else") {
  for (Dtype dtype : {Dtype::f16, Dtype::bf16}) {
    // Row i sees keys 0 to i.
    Case c{.dtype = dtype, .batch = 1, .q_len = 40, .kv_len = 150, .mask = Mask::top_left};
    c = named(c);
    Inputs in = make_inputs(c);
    const size_t d = 128;
    in.v[35 * d + 3] = std::nan(""); // row 35 and later see key 35
    in.v[70 * d] = std::nan("");     // no row sees key 70
    c.pattern = Pattern::nan_value;
    const Expected expected = compute_expected(c, in);
    const Outputs good = perfect(c, expected);
    CHECK(compare(c, expected, good, Judge::reference).wrong == 0);
    auto wrong = [&](size_t row, size_t column, double value, Judge judge = Judge::kernel) {
      Outputs bad = good;
      bad.o[row * d + column] = value;
      return compare(c, expected, bad, judge).wrong;
    };
    CHECK(wrong(34, 3, std::nan("")) == 1);
    CHECK(wrong(34, 3, std::nan(""), Judge::reference) == 1);
    CHECK(wrong(34, 3, INFINITY) == 1);
    CHECK(wrong(35, 3, 0) == 1); // it must show
    CHECK(std::isnan(expected.o[39 * d + 3]));
    CHECK(std::isfinite(expected.o[34 * d + 3]));
    for (size_t i = 0; i < expected.lse.size(); ++i)
      CHECK(std::isfinite(expected.lse[i]));
    Outputs bad = good;
    bad.lse[39] = std::nan("");
    CHECK(compare(c, expected, bad, Judge::kernel).wrong == 1);

    // Bits and a bias of -infinity hide keys as their position does.
    for (const bool by_bias : {false, true}) {
      Case hiding{.dtype = dtype, .q_len = 3, .kv_len = 20};
      hiding.bits.given = !by_bias;
      if (by_bias) hiding.bias = {.type = BiasType::f32};
      hiding = named(hiding);
      Inputs hiding_in = make_inputs(hiding);
      hiding_in.v[7 * d] = std::nan("");
      Matrix &matrix = hiding_in.changes[by_bias ? scores::bias : scores::mask_bits].matrix;
      matrix.extent = {1, 1, 3, 20};
      matrix.values.assign(60, by_bias ? 0 : 1);
      matrix.values[20 + 7] = by_bias ? -INFINITY : 0;
      const Expected hiding_expected = compute_expected(hiding, hiding_in);
      for (size_t row = 0; row < 3; ++row) {
        CHECK(std::isfinite(hiding_expected.o[row * d]) == (row == 1));
        CHECK(!hiding_expected.o_of_weightless[row * d]);
      }
    }

    // A key whose score is -infinity: in the reference its V affects the result, in kernels it need not.
    Case hole{.dtype = dtype, .q_len = 2, .kv_len = 3};
    hole = named(hole);
    Inputs hole_in = make_inputs(hole);
    hole.pattern = Pattern::nan_value;
    for (double &value : hole_in.v)
      value = 1;
    hole_in.v[d] = std::nan("");
    hole_in.k[d] = -INFINITY;
    hole_in.q[0] = hole_in.q[d] = 1;
    const Expected hole_expected = compute_expected(hole, hole_in);
    const Outputs ones = perfect(hole, hole_expected);
    Outputs nans = ones;
    for (size_t row : {0, 1}) {
      CHECK(ones.o[row * d] == 1);
      nans.o[row * d] = std::nan("");
    }
    CHECK(compare(hole, hole_expected, ones, Judge::kernel).wrong == 0);
    CHECK(compare(hole, hole_expected, nans, Judge::kernel).wrong == 0);
    CHECK(compare(hole, hole_expected, nans, Judge::reference).wrong == 0);
    CHECK(compare(hole, hole_expected, ones, Judge::reference).wrong == 2);

    // A NaN key makes every element of the rows that see it NaN, and of no other row.
    Inputs key = make_inputs(c);
    key.k[20 * d + 5] = std::nan("");
    const Expected key_expected = compute_expected(c, key);
    CHECK(std::isnan(key_expected.o[20 * d]));
    CHECK(std::isnan(key_expected.lse[20]));
    CHECK(std::isfinite(key_expected.o[19 * d]));
    CHECK(std::isfinite(key_expected.lse[19]));
    Outputs without = perfect(c, key_expected);
    without.lse[20] = 0;
    CHECK(compare(c, key_expected, without, Judge::kernel).wrong == 1);
  }
}

TEST_CASE("LSE to the other base, and one key too many or too few of a sequence, are noticed") {
  for (Dtype dtype : {Dtype::f16, Dtype::bf16}) {
    CHECK(wrong_elements(with(dtype, {}), [](Case &c, Inputs &) { c.lse_base_2 = true; }) > 0);
    CHECK(wrong_elements(with(dtype, {.lse_base_2 = true}), [](Case &c, Inputs &) { c.lse_base_2 = false; }) >
          0);
    // In a single sequence: its last key hidden.
    const Case ragged = with(dtype, {.batch = 3, .mode = Mode::ragged, .lengths = Lengths::mixed});
    const Sequences sequences(ragged);
    for (int b = 0; b < ragged.batch; ++b) {
      if (sequences.kv_lengths[size_t(b)] == 0 || sequences.q_lengths[size_t(b)] == 0) continue;
      CHECK(wrong_elements(ragged, [&](Case &c, Inputs &in) {
              c.bits.given = true;
              in.changes[scores::mask_bits].matrix.extent = {c.batch, 1, 1, c.kv_len};
              in.changes[scores::mask_bits].matrix.values.assign(size_t(c.batch) * c.kv_len, 1);
              in.changes[scores::mask_bits]
                  .matrix.values[size_t(b) * c.kv_len + sequences.kv_lengths[size_t(b)] - 1] = 0;
            }) > 0);
    }
    // Two keys swapped, as through a wrong page: V's, and K's.
    const Case paged = with(dtype, {.mode = Mode::paged, .pages = {.size = 1}});
    for (std::vector<double> Inputs::*tensor : {&Inputs::k, &Inputs::v})
      CHECK(wrong_elements(paged, [&](Case &c, Inputs &in) {
              const ptrdiff_t token = ptrdiff_t(c.kv_heads) * c.head_size.qk;
              const auto begin = (in.*tensor).begin();
              std::swap_ranges(begin, begin + token, begin + 7 * token);
            }) > 0);
  }
}
