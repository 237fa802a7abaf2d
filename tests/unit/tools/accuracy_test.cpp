//===- accuracy_test.cpp - the error figures of `sluice verify` -----------------------------------------===//

#include "tools/accuracy.h"

#include <array>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

using namespace sluice::tools;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

} // namespace

TEST_CASE("error figures are what they are called") {
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

TEST_CASE("NaN and infinity are equal to nothing but the same infinity") {
  const std::array tolerance = {1e9};
  auto passes = [&](double got, double expected) {
    return measure(std::array{got}, std::array{expected}, tolerance).passed();
  };
  CHECK(passes(-infinity, -infinity));
  CHECK_FALSE(passes(infinity, -infinity));
  CHECK_FALSE(passes(-infinity, 1));
  CHECK_FALSE(passes(1, -infinity));
  CHECK_FALSE(passes(NAN, 1));
  CHECK_FALSE(passes(NAN, NAN));
  // Nothing is allowed where the tolerance is 0.
  CHECK_FALSE(measure(std::array{1e-300}, std::array{0.0}, std::array{0.0}).passed());
}

TEST_CASE("the description names the worst element by its indices") {
  ErrorFigures figures{.count = 24};
  figures.worst_at = 1 * 12 + 2 * 4 + 3;
  const std::array<int64_t, 3> shape = {2, 3, 4};
  CHECK_THAT(describe("O", figures, shape), Catch::Contains("at [1, 2, 3]  ok"));
  figures.beyond = 5;
  CHECK_THAT(describe("O", figures, shape), Catch::EndsWith("WRONG: 5 beyond tolerance"));
}

TEST_CASE("numbers of every element type are read") {
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
}

TEST_CASE("the reference of a call knows closed forms, and allows only rounding") {
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
