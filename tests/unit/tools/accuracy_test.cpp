//===- accuracy_test.cpp - the error figures of `sluice verify` -----------------------------------------===//

#include "tools/sluice/accuracy.h"

#include <array>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

using namespace sluice::tools;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

} // namespace

TEST_CASE("error figures match their names") {
  const std::array got = {1.0, 2.5, -3.0, 0.0};
  const std::array expected = {1.0, 2.0, -4.0, 0.25};
  const std::array tolerance = {0.0, 1.0, 0.5, 1.0};
  const ErrorFigures figures = measure(got, expected, tolerance);
  CHECK(figures.count == 4);
  CHECK(figures.max_absolute == 1.0);
  CHECK(figures.max_relative == 1.0); // 0.25 of 0.25
  CHECK(figures.rms == Approx(std::sqrt((0.25 + 1 + 0.0625) / 4)));
  CHECK(figures.worst_ratio == 2.0);
  CHECK(figures.worst_at == 2);
  CHECK(figures.beyond == 1);
  CHECK_FALSE(figures.passed());
}

TEST_CASE("NaN and infinity are equal only to themselves") {
  const std::array tolerance = {1e9};
  auto passes = [&](double got, double expected) {
    return measure(std::array{got}, std::array{expected}, tolerance).passed();
  };
  CHECK(passes(-infinity, -infinity));
  CHECK_FALSE(passes(infinity, -infinity));
  CHECK_FALSE(passes(-infinity, 1));
  CHECK_FALSE(passes(1, -infinity));
  CHECK_FALSE(passes(NAN, 1));
  CHECK_FALSE(passes(1, NAN));
  CHECK_FALSE(passes(infinity, NAN));
  CHECK_FALSE(passes(NAN, infinity));
  CHECK(passes(NAN, NAN));
  // However large the tolerance.
  CHECK_FALSE(measure(std::array{infinity}, std::array{1.0}, std::array{infinity}).passed());
  // Nothing is allowed where the tolerance is 0.
  CHECK_FALSE(measure(std::array{1e-300}, std::array{0.0}, std::array{0.0}).passed());
}

TEST_CASE("NaN is not judged where V may reach, and everything else is") {
  const std::array<uint8_t, 1> limits = {may_be_nan};
  auto figures = [&](double got, double expected) {
    return measure(std::array{got}, std::array{expected}, std::array{0.1}, limits);
  };
  for (double expected : {1.0, infinity}) {
    CHECK(figures(NAN, expected).passed());
    CHECK(figures(NAN, expected).not_judged == 1);
  }
  CHECK(figures(1.05, 1).passed());
  CHECK(figures(1.05, 1).not_judged == 0);
  CHECK_FALSE(figures(1.2, 1).passed());
  CHECK_FALSE(figures(infinity, 1).passed());
  CHECK_FALSE(figures(1, infinity).passed());
  CHECK_FALSE(figures(-infinity, infinity).passed());
  CHECK_FALSE(figures(1, NAN).passed());
  CHECK(figures(NAN, NAN).not_judged == 0); // judged: right
}

TEST_CASE("staying within an unbounded tolerance is not a success") {
  const std::array<uint8_t, 2> limits = {0, unbounded};
  const ErrorFigures figures =
      measure(std::array{1.0, 1.0}, std::array{1.0, 1.0}, std::array{0.1, 9.0}, limits);
  CHECK(figures.unbounded == 1);
  CHECK(figures.beyond == 0);
  CHECK_FALSE(figures.passed());
  CHECK_THAT(describe("O", figures, std::array<int64_t, 1>{2}),
             Catch::Contains("UNDECIDED") && Catch::Contains("1 elements have a tolerance"));
}

TEST_CASE("the description names the worst element by its indices") {
  ErrorFigures figures{.count = 24};
  figures.worst_at = 1 * 12 + 2 * 4 + 3;
  const std::array<int64_t, 3> shape = {2, 3, 4};
  CHECK_THAT(describe("O", figures, shape), Catch::Contains("at [1, 2, 3]  ok"));
  figures.beyond = 5;
  CHECK_THAT(describe("O", figures, shape), Catch::EndsWith("WRONG: 5 beyond tolerance"));
}

TEST_CASE("numbers of every element type that attention has are read") {
  NpyArray half(NpyType::f16, {2}), bf16(NpyType::u16, {1}), f32(NpyType::f32, {1}), f64(NpyType::f64, {1});
  half.elements<uint16_t>()[0] = 0x3c00;
  half.elements<uint16_t>()[1] = 0xc000;
  bf16.elements<uint16_t>()[0] = 0x3fc0;
  f32.elements<float>()[0] = 0.1f;
  f64.elements<double>()[0] = 0.1;
  CHECK(to_numbers(half) == std::vector<double>{1, -2});
  CHECK(to_numbers(bf16) == std::vector<double>{1.5});
  CHECK(to_numbers(f32) == std::vector<double>{double(0.1f)});
  CHECK(to_numbers(f64) == std::vector<double>{0.1});
  CHECK_THROWS_WITH(to_numbers(NpyArray(NpyType::i32, {1})), "attention has no tensors of i32 ('<i4')");
}

TEST_CASE("the reference of a call matches closed forms, and allows only rounding") {
  // K = 0: every weight is 1/3, O is the mean of V.
  CallInputs inputs{.q = NpyArray(NpyType::f16, {1, 2, 2, 64}),
                    .k = NpyArray(NpyType::f16, {1, 3, 1, 64}),
                    .v = NpyArray(NpyType::f16, {1, 3, 1, 64})};
  for (uint16_t &element : inputs.q.elements<uint16_t>())
    element = 0x3c00;
  for (size_t i = 0; i < 3 * 64; ++i)
    inputs.v.elements<uint16_t>()[i] = i < 64 ? 0 : i < 128 ? 0x3c00 : 0x4000;
  const Reference reference = compute_reference({}, inputs);
  REQUIRE(reference.o.size() == 2 * 2 * 64);
  for (double o : reference.o)
    CHECK(o == 1);
  for (double lse : reference.lse)
    CHECK(lse == Approx(std::log(3.0)).epsilon(1e-7));
  for (double tolerance : reference.o_tolerance) {
    CHECK(tolerance > 0x1p-11); // at least what storing 1.0 as f16 can cost
    CHECK(tolerance < 0.002);   // 2^-10 for P, 2^-11 for O, and little else
  }
  for (double tolerance : reference.lse_tolerance)
    CHECK((tolerance > 0 && tolerance < 1e-5));
}

namespace {

constexpr uint16_t f16_one = 0x3c00, f16_infinity = 0x7c00, f16_nan = 0x7e00;

/// One head of size 4: Q and K are zeros, so that visible keys have equal weight, and V is ones.
CallInputs equal_weights(int64_t q_len, int64_t kv_len) {
  CallInputs inputs{.q = NpyArray(NpyType::f16, {1, q_len, 1, 4}),
                    .k = NpyArray(NpyType::f16, {1, kv_len, 1, 4}),
                    .v = NpyArray(NpyType::f16, {1, kv_len, 1, 4})};
  for (uint16_t &element : inputs.v.elements<uint16_t>())
    element = f16_one;
  return inputs;
}

CallOptions causal(const std::string &alignment) {
  CallOptions options;
  options.causal = true;
  options.alignment = alignment;
  return options;
}

} // namespace

TEST_CASE("a non-finite value in V loosens only its own column in the rows that see it") {
  CallInputs inputs = equal_weights(70, 200);
  inputs.v.elements<uint16_t>()[35 * 4 + 2] = f16_infinity;
  inputs.v.elements<uint16_t>()[66 * 4 + 1] = f16_nan;
  inputs.v.elements<uint16_t>()[140 * 4 + 3] = f16_nan; // no row sees it
  const Reference reference = compute_reference(causal("top-left"), inputs);
  for (size_t i = 0; i < 70; ++i)
    for (size_t e = 0; e < 4; ++e) {
      INFO("row " << i << ", column " << e);
      const bool seen = (e == 2 && i >= 35) || (e == 1 && i >= 66);
      CHECK(std::isfinite(reference.o[i * 4 + e]) == !seen);
      const double tolerance = reference.o_tolerance[i * 4 + e];
      if (seen)
        CHECK(tolerance == 0);
      else
        CHECK((tolerance > 0x1p-11 && tolerance < 0.002));
      CHECK(int(reference.o_limits[i * 4 + e]) == (seen ? may_be_nan : 0));
    }
  for (uint8_t limit : reference.lse_limits)
    CHECK(int(limit) == 0);
}

TEST_CASE("a tolerance depends on the keys that the row sees") {
  CallInputs inputs = equal_weights(2, 2);
  inputs.v.elements<uint16_t>()[4] = 0x7bff; // 65504, at key 1
  const Reference reference = compute_reference(causal("bottom-right"), inputs);
  CHECK(reference.o_tolerance[0] < 0.002); // row 0 sees key 0
  CHECK(reference.o_tolerance[4] > 16);
  CHECK(reference.o_tolerance[5] < 0.002); // another column
}

TEST_CASE("a NaN row is expected to be NaN, and its neighbours are judged as usual") {
  CallInputs inputs = equal_weights(3, 5);
  inputs.q.elements<uint16_t>()[4] = f16_nan; // row 1
  const Reference reference = compute_reference({}, inputs);
  for (size_t i = 0; i < 3; ++i) {
    CHECK(std::isnan(reference.lse[i]) == (i == 1));
    CHECK((reference.lse_tolerance[i] == 0) == (i == 1));
    for (size_t e = 0; e < 4; ++e) {
      CHECK(std::isnan(reference.o[i * 4 + e]) == (i == 1));
      CHECK((reference.o_tolerance[i * 4 + e] == 0) == (i == 1));
      CHECK(int(reference.o_limits[i * 4 + e]) == 0);
    }
  }
}

TEST_CASE("the bound shows where it is not finite") {
  CallInputs inputs = equal_weights(1, 3);
  for (uint16_t &element : inputs.q.elements<uint16_t>())
    element = f16_one;
  for (uint16_t &element : inputs.k.elements<uint16_t>())
    element = f16_one;
  for (size_t j = 0; j < 3; ++j)
    inputs.v.elements<uint16_t>()[j * 4 + 3] = 0; // 0 with any weights
  const auto limits = [&](float scale) {
    CallOptions options;
    options.scale = scale;
    return compute_reference(options, inputs);
  };
  for (size_t e = 0; e < 4; ++e) {
    CHECK(int(limits(1000).o_limits[e]) == 0);
    CHECK(int(limits(1e6f).o_limits[e]) == (e == 3 ? 0 : unbounded));
  }
  CHECK(int(limits(1e6f).lse_limits[0]) == 0);          // 4e6, give or take 10
  CHECK(int(limits(1e38f).lse_limits[0]) == unbounded); // beyond f32
}
