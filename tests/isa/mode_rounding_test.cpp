//===- mode_rounding_test.cpp - how MODE rounds, against exact arithmetic -------------------------------===//
//
// Exact arithmetic has 113 bits, and a separate rule truncates its results. The modes of f32 and of f16 and
// f64 are independent.
//
//===----------------------------------------------------------------------------------------------------===//
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <random>

#include "isa/mode_rows.h"

namespace sluice::test {

namespace {

__extension__ using Exact = __float128;

struct Shape {
  int precision, min_exponent;
  double max;
};
constexpr Shape half_shape = {11, -14, 65504}, single_shape = {24, -126, 0x1.fffffep127},
                double_shape = {53, -1022, 0x1.fffffffffffffp1023};

double rounded(Exact x, const Shape &shape, uint32_t mode) {
  const bool negative = x < 0;
  Exact magnitude = negative ? -x : x;
  if (magnitude == 0) return 0;
  int exponent = 0;
  Exact scaled = magnitude;
  for (; scaled >= 2; ++exponent)
    scaled /= 2;
  for (; scaled < 1; --exponent)
    scaled *= 2;
  const int place = std::max(exponent, shape.min_exponent) - shape.precision + 1; // of the last bit
  Exact in_places = magnitude;
  for (int i = 0; i < std::abs(place); ++i)
    in_places = place > 0 ? in_places / 2 : in_places * 2;
  uint64_t whole = uint64_t(in_places);
  const Exact rest = in_places - Exact(whole);
  const bool away = mode == 0   ? rest > 0.5 || (rest == 0.5 && whole % 2 == 1)
                    : mode == 1 ? rest > 0 && !negative
                    : mode == 2 ? rest > 0 && negative
                                : false;
  const double result = std::ldexp(double(whole + (away ? 1 : 0)), place);
  const bool to_max = mode == 3 || (mode == 1 && negative) || (mode == 2 && !negative);
  const double bounded = result <= shape.max ? result : to_max ? shape.max : INFINITY;
  return negative ? -bounded : bounded;
}

double half_value(uint32_t bits) {
  return double(support::f16_to_float(uint16_t(bits)));
}

/// Numbers of moderate size, whose sums and products fit into 113 bits; some of few bits, for ties.
double moderate(std::mt19937_64 &random, const Shape &shape) {
  const int bits = random() % 2 == 0 ? shape.precision : shape.precision / 2;
  const double mantissa = double(1 + random() % (uint64_t(1) << bits));
  const double value = std::ldexp(mantissa, -bits + int(random() % 9) - 4);
  return random() % 2 == 0 ? value : -value;
}

struct RoundingCase {
  const char *text; // v2, v4 and v6 give v8, each of two dwords if f64
  OperandType sources, result;
  std::function<Exact(Exact, Exact, Exact, const std::function<Exact(Exact)> &)>
      exact; // and how products are rounded
};

using Round = std::function<Exact(Exact)>;
const RoundingCase rounding_cases[] = {
    {"v_add_f32 v8, v2, v4", OperandType::f32, OperandType::f32,
     [](Exact a, Exact b, Exact, const Round &) { return a + b; }},
    {"v_sub_f32 v8, v2, v4", OperandType::f32, OperandType::f32,
     [](Exact a, Exact b, Exact, const Round &) { return a - b; }},
    {"v_subrev_f32 v8, v2, v4", OperandType::f32, OperandType::f32,
     [](Exact a, Exact b, Exact, const Round &) { return b - a; }},
    {"v_mul_f32 v8, v2, v4", OperandType::f32, OperandType::f32,
     [](Exact a, Exact b, Exact, const Round &) { return a * b; }},
    {"v_mul_legacy_f32 v8, v2, v4", OperandType::f32, OperandType::f32,
     [](Exact a, Exact b, Exact, const Round &) { return a * b; }},
    {"v_fma_f32 v8, v2, v4, v6", OperandType::f32, OperandType::f32,
     [](Exact a, Exact b, Exact c, const Round &) { return a * b + c; }},
    {"v_mov_b32 v8, v6\n v_fmac_f32 v8, v2, v4", OperandType::f32, OperandType::f32,
     [](Exact a, Exact b, Exact c, const Round &) { return a * b + c; }},
    {"v_fmamk_f32 v8, v2, 0x40490fdb, v4", OperandType::f32, OperandType::f32,
     [](Exact a, Exact b, Exact, const Round &) { return a * Exact(0x1.921fb6p1) + b; }},
    {"v_fma_mix_f32 v8, v2, v4, v6", OperandType::f32, OperandType::f32,
     [](Exact a, Exact b, Exact c, const Round &) { return a * b + c; }},
    {"v_mov_b32 v3, 0\n v_mov_b32 v5, 0\n v_pk_add_f32 v[8:9], v[2:3], v[4:5]", OperandType::f32,
     OperandType::f32, [](Exact a, Exact b, Exact, const Round &) { return a + b; }},
    {"v_cvt_f32_f64 v8, v[2:3]", OperandType::f64, OperandType::f32,
     [](Exact a, Exact, Exact, const Round &) { return a; }},
    {"v_cvt_f32_i32 v8, v2", OperandType::i64, OperandType::f32,
     [](Exact a, Exact, Exact, const Round &) { return a; }},
    {"v_mov_b32 v7, 0xffffff6d\n v_ldexp_f32 v8, v2, v7", OperandType::f32, OperandType::f32,
     [](Exact a, Exact, Exact, const Round &) { return a * Exact(0x1p-147); }},
    {"v_add_f64 v[8:9], v[2:3], v[4:5]", OperandType::f64, OperandType::f64,
     [](Exact a, Exact b, Exact, const Round &) { return a + b; }},
    {"v_mul_f64 v[8:9], v[2:3], v[4:5]", OperandType::f64, OperandType::f64,
     [](Exact a, Exact b, Exact, const Round &) { return a * b; }},
    {"v_add_f16 v8, v2, v4", OperandType::f16, OperandType::f16,
     [](Exact a, Exact b, Exact, const Round &) { return a + b; }},
    {"v_subrev_f16 v8, v2, v4", OperandType::f16, OperandType::f16,
     [](Exact a, Exact b, Exact, const Round &) { return b - a; }},
    {"v_mul_f16 v8, v2, v4", OperandType::f16, OperandType::f16,
     [](Exact a, Exact b, Exact, const Round &) { return a * b; }},
    {"v_fma_legacy_f16 v8, v2, v4, v6", OperandType::f16, OperandType::f16,
     [](Exact a, Exact b, Exact c, const Round &) { return a * b + c; }},
    {"v_mad_legacy_f16 v8, v2, v4, v6", OperandType::f16, OperandType::f16,
     [](Exact a, Exact b, Exact c, const Round &round) { return round(a * b) + c; }},
    {"v_mov_b32 v8, v6\n v_mac_f16 v8, v2, v4", OperandType::f16, OperandType::f16,
     [](Exact a, Exact b, Exact c, const Round &round) { return round(a * b) + c; }},
    {"v_madak_f16 v8, v2, v4, 0x4248", OperandType::f16, OperandType::f16,
     [](Exact a, Exact b, Exact, const Round &round) { return round(a * b) + Exact(3.140625); }},
    {"v_pk_mul_f16 v8, v2, v4", OperandType::f16, OperandType::f16,
     [](Exact a, Exact b, Exact, const Round &) { return a * b; }},
    {"v_pk_fma_f16 v8, v2, v4, v6", OperandType::f16, OperandType::f16,
     [](Exact a, Exact b, Exact c, const Round &) { return a * b + c; }},
    {"v_ldexp_f16 v8, v2, 15", OperandType::f16, OperandType::f16,
     [](Exact a, Exact, Exact, const Round &) { return a * 32768; }},
    {"v_mov_b32 v7, 0xffffffec\n v_ldexp_f16 v8, v2, v7", OperandType::f16, OperandType::f16,
     [](Exact a, Exact, Exact, const Round &) { return a * Exact(0x1p-20); }},
    {"v_cvt_f16_f32 v8, v2", OperandType::f32, OperandType::f16,
     [](Exact a, Exact, Exact, const Round &) { return a; }},
};

/// Rows that round by MODE; the manual's list of those that do not is longer.
bool rounds(std::string_view name) {
  for (std::string_view kind :
       {"v_add_f",       "v_sub_f",       "v_subrev_f",     "v_mul_f",       "v_mul_legacy_f",
        "v_fma",         "v_mad_f",       "v_mad_legacy_f", "v_mac_f",       "v_madmk",
        "v_madak",       "v_ldexp",       "v_cvt_f32_f64",  "v_cvt_f32_i32", "v_cvt_f32_u32",
        "v_cvt_f16_f32", "v_cvt_f16_i16", "v_cvt_f16_u16",  "v_pk_add_f",    "v_pk_mul_f",
        "v_pk_fma",      "v_div_fmas"})
    if (name.starts_with(kind)) return true;
  return false;
}

} // namespace

TEST_CASE("a fused half is rounded once, however small the part that decides", "[isa][valu][mode]") {
  // 99 * 331 is 2^15 + 1: with the factors at 2^-8 the product is 2^-16 above one half, which no float next
  // to 1024 can distinguish from it, and which decides how 1024.5 is rounded.
  for (emulator::SimdPath path : simd_paths()) {
    TestWave t(path);
    const auto code = t.prepare("v_fma_f16 v8, v2, v4, v6\n v_pk_fma_f16 v9, v2, v4, v6");
    std::mt19937 random(11);
    auto half = [](double x) { return uint32_t(support::f16_from_double(x)); };
    uint32_t wrong = 0;
    for (uint32_t mode = 0; mode < 4; ++mode) {
      t.wave.set_mode(Mode{.round_16_64 = mode}.bits());
      for (uint32_t round = 0; round < 64; ++round) {
        for (uint32_t lane = 0; lane < 64; ++lane) {
          const double sign = lane % 2 == 0 ? 1 : -1;
          const bool crafted = lane < 8;
          t.v(2, lane) = crafted ? half(sign * 99.0 / 256) : random() & 0xffff;
          t.v(4, lane) = crafted ? half(331.0 / 256) : random() & 0xffff;
          t.v(6, lane) = crafted ? half(lane % 4 < 2 ? 1024 : -1025) : random() & 0xffff;
        }
        t.run(code);
        for (uint32_t lane = 0; lane < 64; ++lane) {
          const double a = half_value(t.v(2, lane)), b = half_value(t.v(4, lane)),
                       c = half_value(t.v(6, lane));
          if (!std::isfinite(a) || !std::isfinite(b) || !std::isfinite(c)) continue;
          const double expected = rounded(Exact(a) * Exact(b) + Exact(c), half_shape, mode);
          wrong += half_value(t.v(8, lane) & 0xffff) != expected;
          wrong += half_value(t.v(9, lane) & 0xffff) != expected;
        }
      }
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("results are rounded as MODE says, for each width apart", "[isa][mode]") {
  for (emulator::SimdPath path : simd_paths())
    for (const RoundingCase &c : rounding_cases) {
      TestWave t(path);
      const auto code = t.prepare(c.text);
      const bool single = c.result == OperandType::f32;
      const Shape &shape = single ? single_shape : c.result == OperandType::f64 ? double_shape : half_shape;
      const Shape &input = c.sources == OperandType::f32   ? single_shape
                           : c.sources == OperandType::f64 ? double_shape
                                                           : half_shape;
      std::mt19937_64 random(5);
      uint32_t wrong = 0;
      for (uint32_t mode = 0; mode < 4; ++mode) {
        // The other width's mode must not matter.
        const uint32_t other = (mode + 1) % 4;
        t.wave.set_mode(Mode{.round_32 = single ? mode : other, .round_16_64 = single ? other : mode}.bits());
        for (uint32_t round = 0; round < 8; ++round) {
          for (uint32_t r = 2; r <= 6; r += 2)
            for (uint32_t lane = 0; lane < 64; ++lane) {
              const double x = moderate(random, input);
              if (c.sources == OperandType::i64) {
                t.v(r, lane) = uint32_t(random());
              } else {
                const uint64_t bits = bits_of(x, c.sources);
                t.v(r, lane) = uint32_t(bits);
                t.v(r + 1, lane) = uint32_t(bits >> 32);
              }
            }
          t.run(code);
          for (uint32_t lane = 0; lane < 64; ++lane) {
            auto value = [&](uint32_t r) -> Exact {
              if (c.sources == OperandType::i64) return Exact(int32_t(t.v(r, lane)));
              return Exact(number(c.sources == OperandType::f64 ? t.vv(r, lane) : t.v(r, lane), c.sources));
            };
            const double expected = rounded(c.exact(value(2), value(4), value(6),
                                                    [&](Exact x) { return Exact(rounded(x, shape, mode)); }),
                                            shape, mode);
            const uint64_t bits = c.result == OperandType::f64
                                      ? t.vv(8, lane)
                                      : t.v(8, lane) & (c.result == OperandType::f16 ? 0xffffu : ~0u);
            const double got = number(bits, c.result);
            if (got == expected) continue;
            if (wrong == 0)
              UNSCOPED_INFO(c.text << " in mode " << mode << ": " << got << ", not " << expected);
            ++wrong;
          }
        }
      }
      CHECK(wrong == 0);
    }
}

TEST_CASE("what is not rounded by MODE is the same in all modes", "[isa][mode]") {
  for (uint32_t mode = 1; mode < 4; ++mode)
    check_rows(
        {.round_32 = mode, .round_16_64 = mode}, {}, "",
        [](const ValuRow &row) { return !rounds(row.mnemonic); }, unchanged, unchanged, 150);
}

TEST_CASE("mixed fma is rounded once, as the width of its result says", "[isa][mode]") {
  TestWave t;
  // A rounded product would cancel. The terms are (1 + 2^-23)^2 and the same rounded to f32.
  t.wave.set_mode(Mode{}.bits());
  t.fill(1, 0x1.000002p0f);
  t.fill(3, -0x1.000004p0f);
  t.run("v_fma_mix_f32 v4, v1, v1, v3");
  CHECK(t.f(4) == 0x1p-46f);
  t.fill(1, 1.0001f);
  t.fill(2, 1.0f);
  t.fill(4, 0u);
  t.wave.set_mode(Mode{.round_16_64 = 1}.bits());
  t.run("v_fma_mixlo_f16 v4, v1, v2, 0");
  CHECK((t.v(4) & 0xffff) == 0x3c01);
}

} // namespace sluice::test
