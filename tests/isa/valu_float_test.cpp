//===- valu_float_test.cpp - floating-point instructions, lane by lane ----------------------------------===//
//
// Expected results come from the host's arithmetic in a wider type, rounded once; all NaNs are equal.
//
//===----------------------------------------------------------------------------------------------------===//
#include <catch2/catch.hpp>

#include <cmath>
#include <random>

#include "isa/wave_fixture.h"

namespace sluice::test {

namespace {

constexpr float infinity = INFINITY;

float f32(uint32_t bits) {
  return std::bit_cast<float>(bits);
}
uint32_t bits(float value) {
  return std::bit_cast<uint32_t>(value);
}

const float edges[] = {0.0f,  -0.0f,      1.0f,        -1.0f,   0.5f,     1.5f,     2.5f,
                       -2.5f, 1e-40f,     -1e-45f,     3.4e38f, -3.4e38f, infinity, -infinity,
                       NAN,   8388607.5f, 16777216.0f, 1e-30f,  65504.0f, 65520.0f, 6e-8f};

float random_float(std::mt19937 &random) {
  if (random() % 3 == 0) return edges[random() % std::size(edges)];
  if (random() % 2 == 0) return f32(uint32_t(random()));
  return std::uniform_real_distribution<float>(-20, 20)(random);
}

bool same(float a, float b) {
  return bits(a) == bits(b) || (std::isnan(a) && std::isnan(b));
}
bool same(double a, double b) {
  return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b) || (std::isnan(a) && std::isnan(b));
}

using Expect = std::function<float(float, float, float)>;

/// Sources v1, v2, v3, result v4.
void check(const std::string &instruction, const Expect &expect, uint32_t rounds = 20) {
  for (emulator::SimdPath path : simd_paths()) {
    std::mt19937 random(1);
    TestWave t(path);
    const auto code = t.prepare(instruction);
    for (uint32_t round = 0; round < rounds; ++round) {
      for (uint32_t r = 1; r <= 3; ++r)
        t.fill_lanes(r, [&](uint32_t) { return bits(random_float(random)); });
      t.run(code);
      for (uint32_t lane = 0; lane < 64; ++lane) {
        const float a = t.f(1, lane), b = t.f(2, lane), c = t.f(3, lane);
        const float expected = expect(a, b, c);
        if (same(t.f(4, lane), expected)) continue;
        INFO(instruction << " path " << int(path) << " a " << a << " b " << b << " c " << c << " expected "
                         << expected << std::hex << " a " << bits(a) << " b " << bits(b) << " got "
                         << t.v(4, lane) << " expected " << bits(expected));
        REQUIRE(same(t.f(4, lane), expected));
      }
    }
  }
  SUCCEED();
}

bool is_signalling(float x) {
  return std::isnan(x) && (bits(x) & 0x400000) == 0;
}
float smaller(float a, float b) {
  if (is_signalling(a) || is_signalling(b)) return NAN;
  if (std::isnan(a)) return b;
  if (std::isnan(b)) return a;
  if (a == b) return std::signbit(a) ? a : b;
  return std::min(a, b);
}
float larger(float a, float b) {
  if (is_signalling(a) || is_signalling(b)) return NAN;
  if (std::isnan(a)) return b;
  if (std::isnan(b)) return a;
  if (a == b) return std::signbit(a) ? b : a;
  return std::max(a, b);
}

float flushed(float x) {
  return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0.0f, x) : x;
}

/// Halves, through a second implementation of the format.
using ExpectHalf = std::function<double(double, double, double)>;
void check_half(const std::string &instruction, const ExpectHalf &expect) {
  for (emulator::SimdPath path : simd_paths()) {
    std::mt19937 random(2);
    TestWave t(path);
    const auto code = t.prepare(instruction);
    for (uint32_t round = 0; round < 40; ++round) {
      for (uint32_t r = 1; r <= 3; ++r)
        t.fill_lanes(r, [&](uint32_t) { return uint32_t(random()); });
      t.run(code);
      for (uint32_t lane = 0; lane < 64; ++lane) {
        const double expected = expect(double(t.h(1, lane)), double(t.h(2, lane)), double(t.h(3, lane)));
        const uint16_t rounded = support::f16_from_double(expected);
        if (std::isnan(expected) ? std::isnan(t.h(4, lane)) : t.v(4, lane) == rounded) continue;
        INFO(instruction << " path " << int(path) << " a " << t.h(1, lane) << " b " << t.h(2, lane) << " c "
                         << t.h(3, lane) << std::hex << " got " << t.v(4, lane) << " expected " << rounded);
        REQUIRE(t.v(4, lane) == rounded);
      }
    }
  }
  SUCCEED();
}

} // namespace

TEST_CASE("f32 arithmetic", "[isa][valu]") {
  check("v_add_f32 v4, v1, v2", [](float a, float b, float) { return a + b; });
  check("v_sub_f32 v4, v1, v2", [](float a, float b, float) { return a - b; });
  check("v_subrev_f32 v4, v1, v2", [](float a, float b, float) { return b - a; });
  check("v_mul_f32 v4, v1, v2", [](float a, float b, float) { return a * b; });
  check("v_fma_f32 v4, v1, v2, v3", [](float a, float b, float c) { return std::fma(a, b, c); });
  check("v_fmaak_f32 v4, v1, v2, 0x40200000", [](float a, float b, float) { return std::fma(a, b, 2.5f); });
  check("v_fmamk_f32 v4, v1, 0x40200000, v3", [](float a, float, float c) { return std::fma(a, 2.5f, c); });
  check("v_mov_b32 v4, v3\n v_fmac_f32 v4, v1, v2",
        [](float a, float b, float c) { return std::fma(a, b, c); });
  check("v_min_f32 v4, v1, v2", [](float a, float b, float) { return smaller(a, b); });
  check("v_max_f32 v4, v1, v2", [](float a, float b, float) { return larger(a, b); });
  check("v_max3_f32 v4, v1, v2, v3", [](float a, float b, float c) { return larger(larger(a, b), c); });
  check("v_min3_f32 v4, v1, v2, v3", [](float a, float b, float c) { return smaller(smaller(a, b), c); });
  check("v_med3_f32 v4, v1, v2, v3", [](float a, float b, float c) {
    if (std::isnan(a) || std::isnan(b) || std::isnan(c)) return smaller(smaller(a, b), c);
    return larger(smaller(a, b), smaller(larger(a, b), c));
  });
  check("v_mul_legacy_f32 v4, v1, v2",
        [](float a, float b, float) { return a == 0 || b == 0 ? 0.0f : a * b; });
  check("v_trunc_f32 v4, v1", [](float a, float, float) { return std::trunc(a); });
  check("v_ceil_f32 v4, v1", [](float a, float, float) { return std::ceil(a); });
  check("v_floor_f32 v4, v1", [](float a, float, float) { return std::floor(a); });
  check("v_rndne_f32 v4, v1", [](float a, float, float) { return std::nearbyint(a); });
  check("v_fract_f32 v4, v1", [](float a, float, float) {
    return std::isinf(a) ? NAN : std::min(a - std::floor(a), 0x1.fffffep-1f);
  });
  check("v_ldexp_f32 v4, v1, v2", [](float a, float b, float) { return std::ldexp(a, int32_t(bits(b))); });
  check("v_frexp_mant_f32 v4, v1", [](float a, float, float) {
    int exponent;
    return std::isinf(a) ? a : std::frexp(a, &exponent);
  });
  check("v_frexp_exp_i32_f32 v4, v1", [](float a, float, float) {
    int exponent = 0;
    if (std::isfinite(a)) std::frexp(a, &exponent);
    return f32(uint32_t(exponent));
  });
}

TEST_CASE("modifiers of sources and results", "[isa][valu]") {
  check("v_add_f32_e64 v4, -v1, |v2|", [](float a, float b, float) { return -a + std::fabs(b); });
  check("v_fma_f32 v4, -|v1|, v2, -v3",
        [](float a, float b, float c) { return std::fma(-std::fabs(a), b, -c); });
  check("v_add_f32_e64 v4, v1, v2 clamp", [](float a, float b, float) {
    const float sum = a + b;
    return sum > 0 ? std::min(sum, 1.0f) : 0.0f; // -0 and NaN become 0
  });
  check("v_add_f32 v4, 1.0, v2", [](float, float b, float) { return 1 + b; });
  check("v_add_f32 v4, 0.15915494, v2", [](float, float b, float) { return 0.15915494f + b; });
  check("v_mul_f32 v4, 0x42f60000, v2", [](float, float b, float) { return 123.0f * b; });
  // An integer as operand of a float instruction is its bits.
  check("v_max_f32 v4, 1, v2", [](float, float b, float) { return larger(f32(1), b); });
}

TEST_CASE("transcendentals are correctly rounded and flush subnormals", "[isa][valu]") {
  check(
      "v_exp_f32 v4, v1", [](float a, float, float) { return flushed(float(std::exp2(double(flushed(a))))); },
      200);
  check(
      "v_log_f32 v4, v1",
      [](float a, float, float) {
        const float x = flushed(a);
        return x < 0 ? NAN : float(std::log2(double(x)));
      },
      200);
  check(
      "v_rcp_f32 v4, v1", [](float a, float, float) { return flushed(float(1 / double(flushed(a)))); }, 100);
  check("v_sqrt_f32 v4, v1", [](float a, float, float) { return std::sqrt(flushed(a)); }, 100);
  check(
      "v_rsq_f32 v4, v1", [](float a, float, float) { return float(1 / std::sqrt(double(flushed(a)))); },
      100);
  // The usual range of a softmax, densely.
  for (emulator::SimdPath path : simd_paths()) {
    TestWave t(path);
    const auto code = t.prepare("v_exp_f32 v4, v1");
    uint32_t wrong = 0;
    for (uint32_t step = 0; step < 4000; ++step) {
      t.fill_lanes(1, [&](uint32_t lane) { return bits(-float(step * 64 + lane) / 8192.0f); });
      t.run(code);
      for (uint32_t lane = 0; lane < 64; ++lane)
        wrong += t.f(4, lane) != float(std::exp2(double(t.f(1, lane))));
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("conversions", "[isa][valu]") {
  auto saturated = [](double x, double low, double high) {
    return std::isnan(x) ? 0.0 : std::min(std::max(x, low), high);
  };
  check("v_cvt_i32_f32 v4, v1",
        [&](float a, float, float) { return f32(uint32_t(int32_t(saturated(a, INT32_MIN, INT32_MAX)))); });
  check("v_cvt_u32_f32 v4, v1",
        [&](float a, float, float) { return f32(uint32_t(saturated(a, 0, UINT32_MAX))); });
  check("v_cvt_flr_i32_f32 v4, v1", [&](float a, float, float) {
    return f32(uint32_t(int32_t(saturated(std::floor(a), INT32_MIN, INT32_MAX))));
  });
  check("v_cvt_f32_i32 v4, v1", [](float a, float, float) { return float(int32_t(bits(a))); });
  check("v_cvt_f32_u32 v4, v1", [](float a, float, float) { return float(bits(a)); });
  check("v_cvt_f32_ubyte2 v4, v1", [](float a, float, float) { return float(bits(a) >> 16 & 255); });
  check("v_cvt_f32_ubyte0 v4, v1", [](float a, float, float) { return float(bits(a) & 255); });
  check(
      "v_cvt_f16_f32 v4, v1",
      [](float a, float, float) {
        return std::isnan(a) ? f32((bits(a) >> 16 & 0x8000) | 0x7e00 | (bits(a) >> 13 & 0x3ff))
                             : f32(support::f16_from_float(a));
      },
      200);
  check("v_cvt_pk_u8_f32 v4, v1, 1, v3", [&](float a, float, float c) {
    return f32((bits(c) & 0xffff00ff) | uint32_t(saturated(std::nearbyint(a), 0, 255)) << 8);
  });
}

TEST_CASE("two halves, cut toward zero", "[isa][valu]") {
  // An independent rule: the largest half in magnitude that is not beyond the number.
  auto toward_zero = [](float x) -> uint32_t {
    if (std::isinf(x)) return uint32_t(support::f16_from_float(x));
    uint32_t half = support::f16_from_float(x);
    if (std::fabs(support::f16_to_float(uint16_t(half))) > std::fabs(x)) --half;
    return half;
  };
  check(
      "v_cvt_pkrtz_f16_f32 v4, v1, v2",
      [&](float a, float b, float) {
        // Packed NaNs are compared as bits: quiet, with the upper bits of the payload.
        auto half = [&](float x) {
          return std::isnan(x) ? (bits(x) >> 16 & 0x8000) | 0x7e00 | (bits(x) >> 13 & 0x3ff) : toward_zero(x);
        };
        return f32(half(a) | half(b) << 16);
      },
      200);
}

TEST_CASE("every half converts to f32 and back", "[isa][valu]") {
  for (emulator::SimdPath path : simd_paths()) {
    TestWave t(path);
    const auto code = t.prepare("v_cvt_f32_f16 v4, v1\n v_cvt_f16_f32 v5, v4");
    for (uint32_t base = 0; base < 65536; base += 64) {
      t.fill_lanes(1, [&](uint32_t lane) { return base + lane; });
      t.run(code);
      for (uint32_t lane = 0; lane < 64; ++lane) {
        const float expected = support::f16_to_float(uint16_t(base + lane));
        const bool nan = std::isnan(expected);
        if (!(nan ? std::isnan(t.f(4, lane)) : t.v(4, lane) == bits(expected)))
          CHECK(t.v(4, lane) == bits(expected));
        if (!nan && t.v(5, lane) != base + lane) CHECK(t.v(5, lane) == base + lane);
      }
    }
  }
  SUCCEED();
}

TEST_CASE("f16 arithmetic rounds once", "[isa][valu]") {
  check_half("v_add_f16 v4, v1, v2", [](double a, double b, double) { return a + b; });
  check_half("v_sub_f16 v4, v1, v2", [](double a, double b, double) { return a - b; });
  check_half("v_mul_f16 v4, v1, v2", [](double a, double b, double) { return a * b; });
  // The sum of an exact product and a half needs at most 80 bits: long double's 64 and a sticky bit suffice.
  check_half("v_fma_f16 v4, v1, v2, v3", [](double a, double b, double c) {
    const double product = a * b;
    const double sum = product + c;
    if (!std::isfinite(sum)) return sum;
    const double part = sum - product;
    const double error = (product - (sum - part)) + (c - part);
    if (error == 0 || (std::bit_cast<uint64_t>(sum) & 1) != 0) return sum;
    return std::nextafter(sum, error > 0 ? INFINITY : -INFINITY);
  });
  check_half("v_sqrt_f16 v4, v1", [](double a, double, double) { return std::sqrt(a); });
  check_half("v_rcp_f16 v4, v1", [](double a, double, double) { return 1 / a; });
  check_half("v_floor_f16 v4, v1", [](double a, double, double) { return std::floor(a); });
  check_half("v_mul_f16_e64 v4, -v1, |v2|", [](double a, double b, double) { return -a * std::fabs(b); });
}

TEST_CASE("packed f16 and f32", "[isa][valu]") {
  for (emulator::SimdPath path : simd_paths()) {
    TestWave t(path);
    auto pack = [](float low, float high) {
      return uint32_t(support::f16_from_float(low)) | uint32_t(support::f16_from_float(high)) << 16;
    };
    t.fill(1, pack(1.5f, -2.0f));
    t.fill(2, pack(0.25f, 8.0f));
    t.fill(3, pack(100.0f, 200.0f));
    t.run("v_pk_add_f16 v4, v1, v2\n v_pk_mul_f16 v5, v1, v2 op_sel:[1,0] op_sel_hi:[1,0]\n"
          "v_pk_fma_f16 v6, v1, v2, v3 neg_lo:[1,0,0] neg_hi:[0,0,1]\n v_pk_max_f16 v7, v1, v2\n"
          "v_pk_add_f16 v8, v1, 1.0 op_sel_hi:[1,0]");
    CHECK(t.v(4) == pack(1.75f, 6.0f));
    CHECK(t.v(5) == pack(-0.5f, -0.5f));
    CHECK(t.v(6) == pack(100.0f - 0.375f, -16.0f - 200.0f));
    CHECK(t.v(7) == pack(1.5f, 8.0f));
    CHECK(t.v(8) == pack(2.5f, -1.0f));

    t.fill(10, 1.5f), t.fill(11, 2.5f), t.fill(12, 10.0f), t.fill(13, 20.0f), t.fill(14, 100.0f),
        t.fill(15, 200.0f);
    t.run("v_pk_fma_f32 v[16:17], v[10:11], v[12:13], v[14:15]\n v_pk_mul_f32 v[18:19], v[10:11], v[12:13] "
          "op_sel:[1,0] op_sel_hi:[0,1]\n"
          "v_pk_add_f32 v[20:21], v[10:11], v[12:13] neg_lo:[0,1] neg_hi:[1,0]\n v_pk_mov_b32 v[22:23], "
          "v[10:11], v[12:13] op_sel:[1,0]");
    CHECK(t.f(16) == 115.0f);
    CHECK(t.f(17) == 250.0f);
    CHECK(t.f(18) == 25.0f);
    CHECK(t.f(19) == 30.0f);
    CHECK(t.f(20) == -8.5f);
    CHECK(t.f(21) == 17.5f);
    CHECK(t.f(22) == 2.5f);
    CHECK(t.f(23) == 10.0f);
    // In place, with the halves crossed.
    t.run("v_pk_mul_f32 v[10:11], v[10:11], v[12:13] op_sel:[1,0] op_sel_hi:[0,0]");
    CHECK(t.f(10) == 25.0f);
    CHECK(t.f(11) == 15.0f);

    // Mixed: S0 the upper half of v1, S1 a float, S2 the lower half of v3.
    t.run("v_fma_mix_f32 v24, v1, v12, v3 op_sel:[1,0,0] op_sel_hi:[1,0,1]\n v_mov_b32 v25, v3\n"
          "v_fma_mixhi_f16 v25, v1, v12, -v14 op_sel_hi:[1,0,0]\n v_mov_b32 v26, v3\n v_fma_mixlo_f16 v26, "
          "v12, v13, 0");
    CHECK(t.f(24) == -2.0f * 10.0f + 100.0f);
    CHECK(t.v(25) == pack(100.0f, 15.0f - 100.0f));
    CHECK(t.v(26) == pack(200.0f, 200.0f));
    t.run("v_dot2_f32_f16 v27, v1, v2, v14");
    CHECK(t.f(27) == 1.5f * 0.25f - 16.0f + 100.0f);
  }
}

TEST_CASE("f64", "[isa][valu]") {
  for (emulator::SimdPath path : simd_paths()) {
    TestWave t(path);
    std::mt19937_64 random(5);
    for (uint32_t round = 0; round < 20; ++round) {
      for (uint32_t r = 2; r <= 6; r += 2)
        for (uint32_t lane = 0; lane < 64; ++lane) {
          const double value =
              lane % 4 == 0 ? std::bit_cast<double>(random()) : double(int64_t(random())) / 1e15;
          const uint64_t x = std::bit_cast<uint64_t>(value);
          t.v(r, lane) = uint32_t(x);
          t.v(r + 1, lane) = uint32_t(x >> 32);
        }
      t.run("v_add_f64 v[8:9], v[2:3], v[4:5]\n v_mul_f64 v[10:11], v[2:3], -v[4:5]\n"
            "v_fma_f64 v[12:13], v[2:3], v[4:5], v[6:7]\n v_cvt_f32_f64 v14, v[2:3]\n v_cvt_f64_f32 "
            "v[16:17], v2\n"
            "v_cvt_i32_f64 v18, v[2:3]\n v_floor_f64 v[20:21], v[2:3]\n v_ldexp_f64 v[22:23], v[2:3], 3\n"
            "v_max_f64 v[24:25], v[2:3], v[4:5]\n v_add_f64 v[26:27], v[2:3], 0.5\n v_rndne_f64 v[28:29], "
            "v[2:3]\n"
            "v_cmp_lt_f64 vcc, v[2:3], v[4:5]\n v_cvt_f64_u32 v[30:31], v2");
      for (uint32_t lane = 0; lane < 64; ++lane) {
        const double a = t.d(2, lane), b = t.d(4, lane), c = t.d(6, lane);
        CHECK(same(t.d(8, lane), a + b));
        CHECK(same(t.d(10, lane), a * -b));
        CHECK(same(t.d(12, lane), std::fma(a, b, c)));
        CHECK(same(t.f(14, lane), float(a)));
        CHECK(same(t.d(16, lane), double(t.f(2, lane))));
        CHECK(same(t.d(20, lane), std::floor(a)));
        CHECK(same(t.d(22, lane), a * 8));
        CHECK(same(t.d(26, lane), a + 0.5));
        CHECK(same(t.d(28, lane), std::nearbyint(a)));
        CHECK(same(t.d(30, lane), double(t.v(2, lane))));
        CHECK(bool(t.vcc() >> lane & 1) == (a < b));
        const double bounded = std::isnan(a) ? 0 : std::min(std::max(a, -2147483648.0), 2147483647.0);
        CHECK(int32_t(t.v(18, lane)) == int32_t(bounded));
      }
    }
  }
}

TEST_CASE("float comparisons distinguish NaN from numbers", "[isa][valu]") {
  struct Row {
    const char *name;
    std::function<bool(float, float)> holds;
  };
  auto unordered = [](float a, float b) { return std::isnan(a) || std::isnan(b); };
  const Row rows[] = {{"lt", [](float a, float b) { return a < b; }},
                      {"eq", [](float a, float b) { return a == b; }},
                      {"le", [](float a, float b) { return a <= b; }},
                      {"gt", [](float a, float b) { return a > b; }},
                      {"lg", [](float a, float b) { return a < b || a > b; }},
                      {"ge", [](float a, float b) { return a >= b; }},
                      {"o", [&](float a, float b) { return !unordered(a, b); }},
                      {"u", unordered},
                      {"nge", [](float a, float b) { return !(a >= b); }},
                      {"nlg", [](float a, float b) { return !(a < b || a > b); }},
                      {"ngt", [](float a, float b) { return !(a > b); }},
                      {"nle", [](float a, float b) { return !(a <= b); }},
                      {"neq", [](float a, float b) { return a != b; }},
                      {"nlt", [](float a, float b) { return !(a < b); }},
                      {"f", [](float, float) { return false; }},
                      {"tru", [](float, float) { return true; }}};
  for (emulator::SimdPath path : simd_paths())
    for (const Row &row : rows) {
      TestWave t(path);
      std::mt19937 random(6);
      t.fill_lanes(1, [&](uint32_t) { return bits(random_float(random)); });
      t.fill_lanes(2,
                   [&](uint32_t lane) { return lane % 3 == 0 ? t.v(1, lane) : bits(random_float(random)); });
      t.fill(3, 0x12345678u); // a comparison writes no vector register
      t.run(std::string("v_cmp_") + row.name + "_f32 s[2:3], v1, v2");
      CHECK(t.v(2, 0) != 0xffffffff);
      CHECK(t.v(3) == 0x12345678);
      for (uint32_t lane = 0; lane < 64; ++lane) {
        INFO(row.name << " " << t.f(1, lane) << " " << t.f(2, lane));
        CHECK(bool(t.ss(2) >> lane & 1) == row.holds(t.f(1, lane), t.f(2, lane)));
      }
    }
}

TEST_CASE("classes of floats", "[isa][valu]") {
  TestWave t;
  const float values[] = {f32(0x7f800001), NAN,  -infinity, -1.0f, -1e-40f,
                          -0.0f,           0.0f, 1e-40f,    1.0f,  infinity};
  t.fill_lanes(1, [&](uint32_t lane) { return bits(values[lane % 10]); });
  for (uint32_t kind = 0; kind < 10; ++kind) {
    t.s(4) = 1u << kind;
    t.run("v_cmp_class_f32 vcc, v1, s4");
    for (uint32_t lane = 0; lane < 10; ++lane)
      CHECK(bool(t.vcc() >> lane & 1) == (lane == kind));
  }
}

TEST_CASE("the division sequence of the compiler gives correctly rounded quotients", "[isa][valu]") {
  for (emulator::SimdPath path : simd_paths()) {
    std::mt19937 random(7);
    TestWave t(path);
    for (uint32_t round = 0; round < 100; ++round) {
      for (uint32_t r = 1; r <= 2; ++r)
        t.fill_lanes(r, [&](uint32_t) { return bits(random_float(random)); });
      t.run(
          "v_div_scale_f32 v3, s[2:3], v2, v2, v1\n v_div_scale_f32 v5, vcc, v1, v2, v1\n v_rcp_f32 v6, v3\n"
          "v_fma_f32 v7, -v3, v6, 1.0\n v_fma_f32 v6, v7, v6, v6\n v_mul_f32 v7, v5, v6\n v_fma_f32 v8, -v3, "
          "v7, v5\n"
          "v_fma_f32 v7, v8, v6, v7\n v_fma_f32 v3, -v3, v7, v5\n v_div_fmas_f32 v3, v3, v6, v7\n"
          "v_div_fixup_f32 v4, v3, v2, v1");
      for (uint32_t lane = 0; lane < 64; ++lane) {
        const float expected = t.f(1, lane) / t.f(2, lane);
        if (same(t.f(4, lane), expected)) continue;
        INFO(t.f(1, lane) << " / " << t.f(2, lane) << " is " << expected << ", not " << t.f(4, lane));
        CHECK(same(t.f(4, lane), expected));
      }
    }
  }
  SUCCEED();
}

TEST_CASE("1 / (2 pi) is a constant of the width of its operand", "[isa][valu]") {
  for (emulator::SimdPath path : simd_paths()) {
    TestWave t(path);
    t.fill(2, 0.0);
    t.run("v_add_f64 v[4:5], 0.15915494309189532, v[2:3]\n v_add_f32 v6, 0.15915494, v2\n v_add_f16 v7, "
          "0.15915494, v2\n"
          "v_mov_b32 v8, 0.15915494\n v_mov_b64 v[10:11], 0.15915494309189532");
    CHECK(t.vv(4) == 0x3fc45f306dc9c882);
    CHECK(t.v(6) == 0x3e22f983);
    CHECK(t.v(7) == 0x3118);
    CHECK(t.v(8) == 0x3e22f983);
    CHECK(t.vv(10) == 0x3fc45f306dc9c882);
  }
}

TEST_CASE("the face of a cube", "[isa][valu]") {
  struct Face {
    float id, s, t, major;
  };
  // By the table of the manual: the major axis, and the two others with their signs.
  auto face = [](float x, float y, float z) -> Face {
    const float ax = std::fabs(x), ay = std::fabs(y), az = std::fabs(z);
    if (az >= ax && az >= ay) return z < 0 ? Face{5, -x, -y, 2 * z} : Face{4, x, -y, 2 * z};
    if (ay >= ax) return y < 0 ? Face{3, x, -z, 2 * y} : Face{2, x, z, 2 * y};
    return x < 0 ? Face{1, z, -y, 2 * x} : Face{0, -z, -y, 2 * x};
  };
  for (emulator::SimdPath path : simd_paths()) {
    TestWave t(path);
    std::mt19937 random(8);
    for (uint32_t r = 1; r <= 3; ++r)
      t.fill_lanes(r, [&](uint32_t) { return bits(float(int32_t(random() % 7) - 3)); });
    t.run("v_cubeid_f32 v4, v1, v2, v3\n v_cubesc_f32 v5, v1, v2, v3\n v_cubetc_f32 v6, v1, v2, v3\n"
          "v_cubema_f32 v7, v1, v2, v3");
    for (uint32_t lane = 0; lane < 64; ++lane) {
      const Face expected = face(t.f(1, lane), t.f(2, lane), t.f(3, lane));
      CHECK(t.f(4, lane) == expected.id);
      CHECK(t.f(5, lane) == expected.s);
      CHECK(t.f(6, lane) == expected.t);
      CHECK(t.f(7, lane) == expected.major);
    }
  }
}

TEST_CASE("segments of 2 / pi reduce any angle", "[isa][valu]") {
  TestWave t;
  // Three segments of 53 bits make 2 / pi itself, to more bits than a double has.
  t.fill(2, 1.0);
  t.run("v_mov_b32 v10, 0\n v_mov_b32 v11, 1\n v_trig_preop_f64 v[4:5], v[2:3], v10\n v_trig_preop_f64 "
        "v[6:7], v[2:3], v11\n"
        "v_trig_preop_f64 v[8:9], v[2:3], 2");
  CHECK(t.d(4) == 0x1.45f306dc9c882p-1);
  const long double sum = static_cast<long double>(t.d(4)) + t.d(6) + t.d(8);
  CHECK(std::fabs(double(sum - 0.636619772367581343075535053490057448L)) < 1e-19);
  CHECK(t.d(6) < 0x1p-53);
  // For large angles the leading bits, which are whole turns, are left out; very large ones are scaled.
  t.fill(2, 0x1p60); // exponent field 1083, six more than where that starts
  t.run("v_trig_preop_f64 v[4:5], v[2:3], v10");
  const double two_over_pi = 0.636619772367581343;
  CHECK(std::fabs(t.d(4) - std::fmod(two_over_pi, 0x1p-6)) < 1e-15);
  t.fill(2, 0x1p1000);
  t.run("v_trig_preop_f64 v[4:5], v[2:3], v10");
  CHECK(t.d(4) < 0x1p-700);
  CHECK(t.d(4) > 0x1p-900);
}

TEST_CASE("conversions to normalised whole numbers", "[isa][valu]") {
  auto norm = [](float x, double low, double scale) {
    if (std::isnan(x)) return 0u;
    return uint32_t(int32_t(std::nearbyint(std::clamp(double(x), low, 1.0) * scale))) & 0xffff;
  };
  check(
      "v_cvt_pknorm_i16_f32 v4, v1, v2",
      [=](float a, float b, float) { return f32(norm(a, -1, 32767) | norm(b, -1, 32767) << 16); }, 100);
  check(
      "v_cvt_pknorm_u16_f32 v4, v1, v2",
      [=](float a, float b, float) { return f32(norm(a, 0, 65535) | norm(b, 0, 65535) << 16); }, 100);
  check("v_cvt_off_f32_i4 v4, v1", [](float a, float, float) {
    const int32_t nibble = int32_t(bits(a) & 15);
    return float(nibble < 8 ? nibble : nibble - 16) / 16;
  });
  check("v_mov_b32 v4, v3\n v_cvt_pkaccum_u8_f32 v4, v1, 2", [](float a, float, float c) {
    const double x = std::isnan(a) ? 0 : std::nearbyint(std::min(std::max(double(a), 0.0), 255.0));
    return f32((bits(c) & 0xff00ffff) | uint32_t(x) << 16);
  });
  for (emulator::SimdPath path : simd_paths()) {
    TestWave t(path);
    const auto code =
        t.prepare("v_cvt_norm_i16_f16 v4, v1\n v_cvt_norm_u16_f16 v5, v1\n v_cvt_pknorm_i16_f16 v6, v1, -v1\n"
                  "v_cvt_pknorm_u16_f16 v7, v2, v1 op_sel:[1,0,0]\n v_frexp_exp_i16_f16 v8, v1\n "
                  "v_frexp_mant_f16 v9, v1\n"
                  "v_sin_f16 v10, v1\n v_cos_f16 v11, v1");
    uint32_t wrong = 0;
    for (uint32_t base = 0; base < 65536; base += 64) {
      t.fill_lanes(1, [&](uint32_t lane) { return base + lane; });
      t.fill_lanes(2, [&](uint32_t lane) { return (base + lane) << 16; });
      t.run(code);
      for (uint32_t lane = 0; lane < 64; ++lane) {
        const float x = t.h(1, lane);
        wrong += t.v(4, lane) != norm(x, -1, 32767) || t.v(5, lane) != norm(x, 0, 65535);
        wrong += t.v(6, lane) != (norm(x, -1, 32767) | norm(-x, -1, 32767) << 16);
        wrong += t.v(7, lane) != norm(x, 0, 65535) * 0x10001u;
        int exponent = 0;
        const float mantissa = std::isfinite(x) ? std::frexp(x, &exponent) : x;
        wrong += t.v(8, lane) != (uint32_t(exponent) & 0xffff) || !same(t.h(9, lane), mantissa);
        const bool far = std::fabs(x) > 256 && std::isfinite(x);
        const double angle = std::fmod(double(x), 1.0) * 6.283185307179586;
        const double sine = far ? 0 : std::sin(angle), cosine = far ? 1 : std::cos(angle);
        auto close = [](float got, double expected) {
          return std::isnan(expected) ? std::isnan(got)
                                      : std::fabs(got - expected) <= std::fabs(expected) / 2048 + 1e-7;
        };
        wrong += !close(t.h(10, lane), sine) || !close(t.h(11, lane), cosine);
      }
    }
    CHECK(wrong == 0);
  }
}

} // namespace sluice::test
