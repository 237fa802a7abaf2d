//===- valu_integer_test.cpp - integer and bit instructions, lane by lane -------------------------------===//
//
// Each instruction runs on every compiled form of the vector unit, on numbers near the edges and on random
// ones, with all lanes and with some; the expected result is the manual's sentence in 64-bit arithmetic.
//
//===----------------------------------------------------------------------------------------------------===//
#include <catch2/catch.hpp>

#include <algorithm>
#include <random>

#include "isa/wave_fixture.h"

namespace sluice::test {

namespace {

constexpr uint32_t edges[] = {0,          1,          2,          31,         32,         0x7f,
                              0x80,       0xff,       0x7fff,     0x8000,     0xffff,     0x10000,
                              0x7fffff,   0x800000,   0x00ffffff, 0x7fffffff, 0x80000000, 0x80000001,
                              0xfffffffe, 0xffffffff, 0x12345678};

uint32_t random_value(std::mt19937 &random) {
  return random() % 4 == 0 ? edges[random() % std::size(edges)] : uint32_t(random());
}

using Expect32 = std::function<uint32_t(uint32_t a, uint32_t b, uint32_t c)>;
using Expect64 = std::function<uint64_t(uint64_t a, uint64_t b, uint64_t c)>;

constexpr uint64_t some_lanes = 0x8f0f'1234'5678'9abd;

/// Sources v1, v2, v3, result v4.
void check(const std::string &instruction, const Expect32 &expect) {
  for (emulator::SimdPath path : simd_paths()) {
    std::mt19937 random(1);
    for (uint64_t exec : {emulator::all_lanes, some_lanes}) {
      TestWave t(path);
      for (uint32_t r = 1; r <= 3; ++r)
        t.fill_lanes(r, [&](uint32_t) { return random_value(random); });
      t.fill(4, 0xdeadbeef);
      t.wave.set_exec(exec);
      t.run(instruction);
      for (uint32_t lane = 0; lane < 64; ++lane) {
        const uint32_t a = t.v(1, lane), b = t.v(2, lane), c = t.v(3, lane);
        const uint32_t expected = (exec >> lane & 1) != 0 ? expect(a, b, c) : 0xdeadbeef;
        if (t.v(4, lane) == expected) continue;
        INFO(instruction << " path " << int(path) << " lane " << lane << std::hex << " a " << a << " b " << b
                         << " c " << c);
        REQUIRE(t.v(4, lane) == expected);
      }
    }
  }
  SUCCEED();
}

/// Sources v[2:3], v[4:5], v[6:7], result v[8:9].
void check_wide(const std::string &instruction, const Expect64 &expect) {
  for (emulator::SimdPath path : simd_paths()) {
    std::mt19937 random(2);
    TestWave t(path);
    for (uint32_t r = 2; r <= 7; ++r)
      t.fill_lanes(r, [&](uint32_t) { return random_value(random); });
    t.wave.set_exec(some_lanes);
    t.fill_pair(8, 0xdeadbeefdeadbeef);
    t.run(instruction);
    for (uint32_t lane = 0; lane < 64; ++lane) {
      const uint64_t expected = (some_lanes >> lane & 1) != 0
                                    ? expect(t.vv(2, lane), t.vv(4, lane), t.vv(6, lane))
                                    : 0xdeadbeefdeadbeef;
      INFO(instruction << " path " << int(path) << " lane " << lane);
      REQUIRE(t.vv(8, lane) == expected);
    }
  }
}

int32_t i24(uint32_t x) {
  return int32_t(x << 8) >> 8;
}
int32_t i16(uint32_t x) {
  return int16_t(x);
}
uint32_t u16(uint32_t x) {
  return x & 0xffff;
}
int64_t clamp64(int64_t x, int64_t low, int64_t high) {
  return std::clamp(x, low, high);
}

} // namespace

TEST_CASE("integer sums and products", "[isa][valu]") {
  check("v_add_u32 v4, v1, v2", [](auto a, auto b, auto) { return a + b; });
  check("v_sub_u32 v4, v1, v2", [](auto a, auto b, auto) { return a - b; });
  check("v_subrev_u32 v4, v1, v2", [](auto a, auto b, auto) { return b - a; });
  check("v_add_u32 v4, v1, v2 clamp",
        [](auto a, auto b, auto) { return uint32_t(std::min<uint64_t>(uint64_t(a) + b, ~0u)); });
  check("v_sub_u32 v4, v1, v2 clamp", [](auto a, auto b, auto) { return a > b ? a - b : 0; });
  check("v_add_i32 v4, v1, v2", [](auto a, auto b, auto) { return a + b; });
  check("v_add_i32 v4, v1, v2 clamp", [](auto a, auto b, auto) {
    return uint32_t(clamp64(int64_t(int32_t(a)) + int32_t(b), INT32_MIN, INT32_MAX));
  });
  check("v_sub_i32 v4, v1, v2 clamp", [](auto a, auto b, auto) {
    return uint32_t(clamp64(int64_t(int32_t(a)) - int32_t(b), INT32_MIN, INT32_MAX));
  });
  check("v_mul_lo_u32 v4, v1, v2", [](auto a, auto b, auto) { return a * b; });
  check("v_mul_hi_u32 v4, v1, v2", [](auto a, auto b, auto) { return uint32_t(uint64_t(a) * b >> 32); });
  check("v_mul_hi_i32 v4, v1, v2",
        [](auto a, auto b, auto) { return uint32_t(int64_t(int32_t(a)) * int32_t(b) >> 32); });
  check("v_mul_i32_i24 v4, v1, v2", [](auto a, auto b, auto) { return uint32_t(int64_t(i24(a)) * i24(b)); });
  check("v_mul_hi_i32_i24 v4, v1, v2",
        [](auto a, auto b, auto) { return uint32_t(int64_t(i24(a)) * i24(b) >> 32); });
  check("v_mul_u32_u24 v4, v1, v2",
        [](auto a, auto b, auto) { return uint32_t(uint64_t(a & 0xffffff) * (b & 0xffffff)); });
  check("v_mul_hi_u32_u24 v4, v1, v2",
        [](auto a, auto b, auto) { return uint32_t(uint64_t(a & 0xffffff) * (b & 0xffffff) >> 32); });
  check("v_mad_i32_i24 v4, v1, v2, v3",
        [](auto a, auto b, auto c) { return uint32_t(int64_t(i24(a)) * i24(b)) + c; });
  check("v_mad_u32_u24 v4, v1, v2, v3",
        [](auto a, auto b, auto c) { return (a & 0xffffff) * (b & 0xffffff) + c; });
  check("v_mad_u32_u16 v4, v1, v2, v3", [](auto a, auto b, auto c) { return u16(a) * u16(b) + c; });
  check("v_mad_i32_i16 v4, v1, v2, v3", [](auto a, auto b, auto c) { return uint32_t(i16(a) * i16(b)) + c; });
  check("v_add3_u32 v4, v1, v2, v3", [](auto a, auto b, auto c) { return a + b + c; });
  check("v_lshl_add_u32 v4, v1, v2, v3", [](auto a, auto b, auto c) { return (a << (b & 31)) + c; });
  check("v_add_lshl_u32 v4, v1, v2, v3", [](auto a, auto b, auto c) { return (a + b) << (c & 31); });
  check("v_xad_u32 v4, v1, v2, v3", [](auto a, auto b, auto c) { return (a ^ b) + c; });
  check("v_sad_u32 v4, v1, v2, v3",
        [](auto a, auto b, auto c) { return std::max(a, b) - std::min(a, b) + c; });
  check("v_sad_u8 v4, v1, v2, v3", [](auto a, auto b, auto c) {
    uint32_t sum = c;
    for (uint32_t i = 0; i < 32; i += 8)
      sum += uint32_t(std::abs(int(a >> i & 255) - int(b >> i & 255)));
    return sum;
  });
}

TEST_CASE("integer minima and maxima", "[isa][valu]") {
  check("v_min_u32 v4, v1, v2", [](auto a, auto b, auto) { return std::min(a, b); });
  check("v_max_u32 v4, v1, v2", [](auto a, auto b, auto) { return std::max(a, b); });
  check("v_min_i32 v4, v1, v2",
        [](auto a, auto b, auto) { return uint32_t(std::min(int32_t(a), int32_t(b))); });
  check("v_max_i32 v4, v1, v2",
        [](auto a, auto b, auto) { return uint32_t(std::max(int32_t(a), int32_t(b))); });
  check("v_min3_u32 v4, v1, v2, v3", [](auto a, auto b, auto c) { return std::min({a, b, c}); });
  check("v_max3_u32 v4, v1, v2, v3", [](auto a, auto b, auto c) { return std::max({a, b, c}); });
  check("v_max3_i32 v4, v1, v2, v3",
        [](auto a, auto b, auto c) { return uint32_t(std::max({int32_t(a), int32_t(b), int32_t(c)})); });
  check("v_med3_i32 v4, v1, v2, v3", [](auto a, auto b, auto c) {
    std::array<int32_t, 3> sorted{int32_t(a), int32_t(b), int32_t(c)};
    std::sort(sorted.begin(), sorted.end());
    return uint32_t(sorted[1]);
  });
  check("v_med3_u32 v4, v1, v2, v3", [](auto a, auto b, auto c) {
    std::array<uint32_t, 3> sorted{a, b, c};
    std::sort(sorted.begin(), sorted.end());
    return sorted[1];
  });
}

TEST_CASE("bits", "[isa][valu]") {
  check("v_and_b32 v4, v1, v2", [](auto a, auto b, auto) { return a & b; });
  check("v_or_b32 v4, v1, v2", [](auto a, auto b, auto) { return a | b; });
  check("v_xor_b32 v4, v1, v2", [](auto a, auto b, auto) { return a ^ b; });
  check("v_xnor_b32 v4, v1, v2", [](auto a, auto b, auto) { return ~(a ^ b); });
  check("v_not_b32 v4, v1", [](auto a, auto, auto) { return ~a; });
  check("v_mov_b32 v4, v1", [](auto a, auto, auto) { return a; });
  check("v_lshlrev_b32 v4, v1, v2", [](auto a, auto b, auto) { return b << (a & 31); });
  check("v_lshrrev_b32 v4, v1, v2", [](auto a, auto b, auto) { return b >> (a & 31); });
  check("v_ashrrev_i32 v4, v1, v2", [](auto a, auto b, auto) { return uint32_t(int32_t(b) >> (a & 31)); });
  check("v_lshl_or_b32 v4, v1, v2, v3", [](auto a, auto b, auto c) { return (a << (b & 31)) | c; });
  check("v_and_or_b32 v4, v1, v2, v3", [](auto a, auto b, auto c) { return (a & b) | c; });
  check("v_or3_b32 v4, v1, v2, v3", [](auto a, auto b, auto c) { return a | b | c; });
  check("v_bfi_b32 v4, v1, v2, v3", [](auto a, auto b, auto c) { return (a & b) | (~a & c); });
  check("v_bfe_u32 v4, v1, v2, v3", [](auto a, auto b, auto c) {
    return uint32_t(uint64_t(a) >> (b & 31) & ((uint64_t(1) << (c & 31)) - 1));
  });
  check("v_bfe_i32 v4, v1, v2, v3", [](auto a, auto b, auto c) {
    const uint32_t width = c & 31;
    if (width == 0) return 0u;
    const int64_t field = int64_t(int32_t(a)) >> (b & 31) & int64_t((uint64_t(1) << width) - 1);
    return uint32_t(field >> (width - 1) & 1 ? field - (int64_t(1) << width) : field);
  });
  check("v_bfm_b32 v4, v1, v2", [](auto a, auto b, auto) { return ((1u << (a & 31)) - 1) << (b & 31); });
  check("v_alignbit_b32 v4, v1, v2, v3",
        [](auto a, auto b, auto c) { return uint32_t((uint64_t(a) << 32 | b) >> (c & 31)); });
  check("v_alignbyte_b32 v4, v1, v2, v3",
        [](auto a, auto b, auto c) { return uint32_t((uint64_t(a) << 32 | b) >> 8 * (c & 3)); });
  check("v_perm_b32 v4, v1, v2, v3", [](auto a, auto b, auto c) {
    const uint64_t both = uint64_t(a) << 32 | b;
    uint32_t result = 0;
    for (uint32_t i = 0; i < 4; ++i) {
      const uint32_t select = c >> 8 * i & 0xff;
      uint32_t byte = 0xff;
      if (select < 8)
        byte = uint32_t(both >> 8 * select & 0xff);
      else if (select < 12)
        byte = both >> (16 * (select - 8) + 15) & 1 ? 0xff : 0;
      else if (select == 12)
        byte = 0;
      result |= byte << 8 * i;
    }
    return result;
  });
  check("v_bcnt_u32_b32 v4, v1, v2", [](auto a, auto b, auto) { return uint32_t(std::popcount(a)) + b; });
  check("v_bfrev_b32 v4, v1", [](auto a, auto, auto) {
    uint32_t result = 0;
    for (uint32_t i = 0; i < 32; ++i)
      result |= (a >> i & 1) << (31 - i);
    return result;
  });
  check("v_ffbh_u32 v4, v1", [](auto a, auto, auto) { return a == 0 ? ~0u : uint32_t(std::countl_zero(a)); });
  check("v_ffbl_b32 v4, v1", [](auto a, auto, auto) { return a == 0 ? ~0u : uint32_t(std::countr_zero(a)); });
  check("v_ffbh_i32 v4, v1", [](auto a, auto, auto) {
    const uint32_t flipped = int32_t(a) < 0 ? ~a : a;
    return flipped == 0 ? ~0u : uint32_t(std::countl_zero(flipped));
  });
}

TEST_CASE("sixteen bits leave zeros above", "[isa][valu]") {
  check("v_add_u16 v4, v1, v2", [](auto a, auto b, auto) { return u16(a + b); });
  check("v_sub_u16 v4, v1, v2", [](auto a, auto b, auto) { return u16(a - b); });
  check("v_mul_lo_u16 v4, v1, v2", [](auto a, auto b, auto) { return u16(u16(a) * u16(b)); });
  check("v_mad_legacy_u16 v4, v1, v2, v3", [](auto a, auto b, auto c) { return u16(u16(a) * u16(b) + c); });
  check("v_lshlrev_b16 v4, v1, v2", [](auto a, auto b, auto) { return u16(b << (a & 15)); });
  check("v_lshrrev_b16 v4, v1, v2", [](auto a, auto b, auto) { return u16(b) >> (a & 15); });
  check("v_ashrrev_i16 v4, v1, v2", [](auto a, auto b, auto) { return u16(uint32_t(i16(b) >> (a & 15))); });
  check("v_min_i16 v4, v1, v2", [](auto a, auto b, auto) { return u16(uint32_t(std::min(i16(a), i16(b)))); });
  check("v_max_u16 v4, v1, v2", [](auto a, auto b, auto) { return std::max(u16(a), u16(b)); });
  check("v_cvt_pk_u16_u32 v4, v1, v2",
        [](auto a, auto b, auto) { return std::min(a, 65535u) | std::min(b, 65535u) << 16; });
  check("v_cvt_pk_i16_i32 v4, v1, v2", [](auto a, auto b, auto) {
    return u16(uint32_t(std::clamp(int32_t(a), -32768, 32767))) |
           uint32_t(std::clamp(int32_t(b), -32768, 32767)) << 16;
  });
  check("v_sat_pk_u8_i16 v4, v1", [](auto a, auto, auto) {
    return uint32_t(std::clamp(i16(a), 0, 255)) | uint32_t(std::clamp(i16(a >> 16), 0, 255)) << 8;
  });
  check("v_pack_b32_f16 v4, v1, v2", [](auto a, auto b, auto) { return u16(a) | b << 16; });
  // op_sel takes the upper half of a source, and of the destination; the other half stays.
  check("v_mad_u16 v4, v1, v2, v3 op_sel:[1,0,0,0]",
        [](auto a, auto b, auto c) { return u16((a >> 16) * u16(b) + c) | 0xdead0000; });
  check("v_mad_u16 v4, v1, v2, v3 op_sel:[0,1,1,1]",
        [](auto a, auto b, auto c) { return u16(u16(a) * (b >> 16) + (c >> 16)) << 16 | 0xbeef; });
}

TEST_CASE("the newer forms of three operands keep the other half", "[isa][valu]") {
  check("v_mad_u16 v4, v1, v2, v3",
        [](auto a, auto b, auto c) { return u16(u16(a) * u16(b) + c) | 0xdead0000; });
  check("v_mad_i16 v4, v1, v2, v3",
        [](auto a, auto b, auto c) { return u16(u16(a) * u16(b) + c) | 0xdead0000; });
  for (const char *name : {"v_mad_f16", "v_fma_f16", "v_div_fixup_f16"}) {
    TestWave t;
    for (uint32_t r = 1; r <= 3; ++r)
      t.fill_half(r, 1.0f);
    t.fill(4, 0xdeadbeef);
    t.run(std::string(name) + " v4, v1, v2, v3");
    CHECK(t.v(4) >> 16 == 0xdead);
    t.run(std::string(name).insert(std::string(name).find("_f16"), "_legacy") + " v5, v1, v2, v3");
    CHECK(t.v(5) == (t.v(4) & 0xffff));
    t.fill(4, 0xdeadbeef);
    t.run(std::string(name) + " v4, v1, v2, v3 op_sel:[0,0,0,1]");
    CHECK(t.v(4) == (t.v(5) << 16 | 0xbeef));
  }
}

TEST_CASE("packed sixteen bits", "[isa][valu]") {
  auto both = [](auto half) {
    return [half](uint32_t a, uint32_t b, uint32_t c) {
      return u16(half(u16(a), u16(b), u16(c))) | half(a >> 16, b >> 16, c >> 16) << 16;
    };
  };
  check("v_pk_add_u16 v4, v1, v2", both([](auto a, auto b, auto) { return a + b; }));
  check("v_pk_sub_i16 v4, v1, v2", both([](auto a, auto b, auto) { return a - b; }));
  check("v_pk_mul_lo_u16 v4, v1, v2", both([](auto a, auto b, auto) { return a * b; }));
  check("v_pk_mad_u16 v4, v1, v2, v3", both([](auto a, auto b, auto c) { return a * b + c; }));
  check("v_pk_lshlrev_b16 v4, v1, v2", both([](auto a, auto b, auto) { return b << (a & 15); }));
  check("v_pk_ashrrev_i16 v4, v1, v2",
        both([](auto a, auto b, auto) { return uint32_t(i16(b) >> (a & 15)); }));
  check("v_pk_max_i16 v4, v1, v2",
        both([](auto a, auto b, auto) { return uint32_t(std::max(i16(a), i16(b))); }));
  check("v_pk_min_u16 v4, v1, v2", both([](auto a, auto b, auto) { return std::min(a, b); }));
  check("v_pk_add_u16 v4, v1, v2 clamp", both([](auto a, auto b, auto) { return std::min(a + b, 65535u); }));
  check("v_pk_add_i16 v4, v1, v2 clamp",
        both([](auto a, auto b, auto) { return uint32_t(std::clamp(i16(a) + i16(b), -32768, 32767)); }));
  check("v_pk_add_u16 v4, v1, v2 op_sel:[1,0] op_sel_hi:[0,1]",
        [](auto a, auto b, auto) { return u16((a >> 16) + b) | (a + (b >> 16)) << 16; });
}

TEST_CASE("dot products of integers", "[isa][valu]") {
  check("v_dot4_i32_i8 v4, v1, v2, v3", [](auto a, auto b, auto c) {
    for (uint32_t i = 0; i < 32; i += 8)
      c += uint32_t(int8_t(a >> i) * int8_t(b >> i));
    return c;
  });
  check("v_dot4_u32_u8 v4, v1, v2, v3", [](auto a, auto b, auto c) {
    for (uint32_t i = 0; i < 32; i += 8)
      c += (a >> i & 255) * (b >> i & 255);
    return c;
  });
  check("v_dot2_i32_i16 v4, v1, v2, v3", [](auto a, auto b, auto c) {
    return c + uint32_t(i16(a) * i16(b)) + uint32_t(i16(a >> 16) * i16(b >> 16));
  });
}

TEST_CASE("64 bits", "[isa][valu]") {
  check_wide("v_lshlrev_b64 v[8:9], v2, v[4:5]", [](auto a, auto b, auto) { return b << (a & 63); });
  check_wide("v_lshrrev_b64 v[8:9], v2, v[4:5]", [](auto a, auto b, auto) { return b >> (a & 63); });
  check_wide("v_ashrrev_i64 v[8:9], v2, v[4:5]",
             [](auto a, auto b, auto) { return uint64_t(int64_t(b) >> (a & 63)); });
  check_wide("v_mov_b64 v[8:9], v[2:3]", [](auto a, auto, auto) { return a; });
  for (uint32_t shift = 0; shift <= 4; ++shift)
    check_wide("v_lshl_add_u64 v[8:9], v[2:3], " + std::to_string(shift) + ", v[6:7]",
               [shift](auto a, auto, auto c) { return (a << shift) + c; });
  check_wide("v_lshl_add_u64 v[8:9], v[2:3], 5, v[6:7]", [](auto, auto, auto c) { return c; });
  check_wide("v_mad_u64_u32 v[8:9], vcc, v2, v4, v[6:7]",
             [](auto a, auto b, auto c) { return uint64_t(uint32_t(a)) * uint32_t(b) + c; });
  check_wide("v_mad_i64_i32 v[8:9], vcc, v2, v4, v[6:7]",
             [](auto a, auto b, auto c) { return uint64_t(int64_t(int32_t(a)) * int32_t(b)) + c; });
  check_wide("v_mov_b64 v[8:9], -3", [](auto, auto, auto) { return uint64_t(-3); });
  check_wide("v_lshlrev_b64 v[8:9], 4, v[8:9]", [](auto, auto, auto) { return 0xdeadbeefdeadbeef << 4; });
}

TEST_CASE("carries go from instruction to instruction", "[isa][valu]") {
  for (emulator::SimdPath path : simd_paths()) {
    TestWave t(path);
    std::mt19937 random(3);
    for (uint32_t r = 2; r <= 5; ++r)
      t.fill_lanes(r, [&](uint32_t) { return random_value(random); });
    t.run("v_add_co_u32 v8, vcc, v2, v4\n v_addc_co_u32 v9, vcc, v3, v5, vcc");
    t.run("v_sub_co_u32 v10, s[6:7], v2, v4\n v_subb_co_u32 v11, s[6:7], v3, v5, s[6:7]");
    t.run("v_subrev_co_u32 v12, vcc, v2, v4\n v_subbrev_co_u32 v13, vcc, v3, v5, vcc");
    for (uint32_t lane = 0; lane < 64; ++lane) {
      const uint64_t a = t.vv(2, lane), b = t.vv(4, lane);
      CHECK(t.vv(8, lane) == a + b);
      CHECK(t.vv(10, lane) == a - b);
      CHECK(t.vv(12, lane) == b - a);
      CHECK((t.ss(6) >> lane & 1) == (b > a));
      CHECK((t.vcc() >> lane & 1) == (a > b));
    }
  }
}

TEST_CASE("comparisons of integers write a bit per active lane", "[isa][valu]") {
  struct Row {
    const char *name;
    std::function<bool(int64_t, int64_t)> holds;
  };
  const Row rows[] = {{"lt", std::less<>()},     {"le", std::less_equal<>()},
                      {"gt", std::greater<>()},  {"ge", std::greater_equal<>()},
                      {"eq", std::equal_to<>()}, {"ne", std::not_equal_to<>()}};
  for (emulator::SimdPath path : simd_paths())
    for (const Row &row : rows) {
      TestWave t(path);
      std::mt19937 random(4);
      t.fill_lanes(1, [&](uint32_t) { return random_value(random); });
      t.fill_lanes(2, [&](uint32_t lane) { return lane % 3 == 0 ? t.v(1, lane) : random_value(random); });
      t.wave.set_exec(some_lanes);
      const std::string name = std::string("v_cmp_") + row.name;
      t.run(name + "_i32 s[6:7], v1, v2\n" + name + "_u32 s[8:9], v1, v2\n" + name + "_u16 vcc, v1, v2\n" +
            name + "_i16 s[10:11], v1, v2");
      for (uint32_t lane = 0; lane < 64; ++lane) {
        const bool active = some_lanes >> lane & 1;
        const uint32_t a = t.v(1, lane), b = t.v(2, lane);
        CHECK(bool(t.ss(6) >> lane & 1) == (active && row.holds(int32_t(a), int32_t(b))));
        CHECK(bool(t.ss(8) >> lane & 1) == (active && row.holds(a, b)));
        CHECK(bool(t.vcc() >> lane & 1) == (active && row.holds(u16(a), u16(b))));
        CHECK(bool(t.ss(10) >> lane & 1) == (active && row.holds(i16(a), i16(b))));
      }
      t.run(std::string("v_cmpx_") + row.name + "_u32 vcc, v1, v2");
      CHECK(t.wave.exec() == t.ss(8));
      CHECK(t.vcc() == t.ss(8));
    }
}

TEST_CASE("a selection takes S1 where the mask has a bit", "[isa][valu]") {
  for (emulator::SimdPath path : simd_paths()) {
    TestWave t(path);
    t.fill_lanes(1, [](uint32_t lane) { return lane; });
    t.fill_lanes(2, [](uint32_t lane) { return 1000 + lane; });
    t.wave.set_pair(6, some_lanes);
    t.run("v_cndmask_b32_e64 v4, v1, v2, s[6:7]");
    t.wave.set_pair(emulator::sgpr_vcc, ~some_lanes);
    t.run("v_cndmask_b32_e32 v5, v1, v2, vcc\n v_cndmask_b32_e64 v6, -v1, |v2|, s[6:7]");
    for (uint32_t lane = 0; lane < 64; ++lane) {
      const bool second = some_lanes >> lane & 1;
      CHECK(t.v(4, lane) == (second ? 1000 + lane : lane));
      CHECK(t.v(5, lane) == (second ? lane : 1000 + lane));
      CHECK(t.v(6, lane) == (second ? 1000 + lane : lane ^ 0x80000000));
    }
  }
}

TEST_CASE("exchanges between lanes and scalars", "[isa][valu]") {
  for (emulator::SimdPath path : simd_paths()) {
    TestWave t(path);
    t.fill_lanes(1, [](uint32_t lane) { return 100 + lane; });
    t.run("v_readlane_b32 s4, v1, 7\n v_readfirstlane_b32 s5, v1");
    CHECK(t.s(4) == 107);
    CHECK(t.s(5) == 100);
    t.s(6) = 64 + 9; // the lane counts modulo 64
    t.wave.set_exec(0xf0);
    t.run("v_readlane_b32 s4, v1, s6\n v_readfirstlane_b32 s5, v1\n v_writelane_b32 v2, 21, 3");
    CHECK(t.s(4) == 109);
    CHECK(t.s(5) == 104);
    CHECK(t.v(2, 3) == 21); // with any EXEC
    t.wave.set_exec(0);
    t.run("v_readfirstlane_b32 s5, v1");
    CHECK(t.s(5) == 100);

    t.wave.set_exec(emulator::all_lanes);
    t.run("v_mbcnt_lo_u32_b32 v3, -1, 0\n v_mbcnt_hi_u32_b32 v3, -1, v3");
    for (uint32_t lane = 0; lane < 64; ++lane)
      CHECK(t.v(3, lane) == lane);

    t.fill_lanes(2, [](uint32_t lane) { return lane; });
    t.wave.set_exec(some_lanes);
    t.run("v_swap_b32 v1, v2");
    for (uint32_t lane = 0; lane < 64; ++lane) {
      const bool active = some_lanes >> lane & 1;
      CHECK(t.v(1, lane) == (active ? lane : 100 + lane));
      CHECK(t.v(2, lane) == (active ? 100 + lane : lane));
    }
  }
}

TEST_CASE("accumulation registers are separate registers", "[isa][valu]") {
  TestWave t;
  t.fill(1, 11u);
  t.run(
      "v_accvgpr_write_b32 a1, v1\n v_mov_b32 v1, 5\n v_accvgpr_mov_b32 a2, a1\n v_accvgpr_read_b32 v3, a2");
  CHECK(t.a(1) == 11);
  CHECK(t.v(3) == 11);
  CHECK(t.v(1) == 5);
  t.run("v_accvgpr_write_b32 a3, 1.0");
  CHECK(t.a(3) == 0x3f800000);
}

TEST_CASE("a 64-bit address is a base and an index shifted by at most four", "[isa][valu]") {
  check_wide("v_and_b32 v4, 15, v4\n v_lshl_add_u64 v[8:9], v[2:3], v4, v[6:7]", [](auto a, auto b, auto c) {
    const uint32_t shift = uint32_t(b) & 7;
    return (shift > 4 ? 0 : a << shift) + c;
  });
}

TEST_CASE("sums of differences of bytes", "[isa][valu]") {
  auto byte = [](uint64_t x, uint32_t i) { return int32_t(x >> 8 * i & 0xff); };
  auto difference = [=](uint64_t a, uint64_t b, uint32_t from, bool masked) {
    uint32_t sum = 0;
    for (uint32_t i = 0; i < 4; ++i)
      if (!masked || byte(b, i) != 0) sum += uint32_t(std::abs(byte(a, i + from) - byte(b, i)));
    return sum;
  };
  auto bounded = [](uint64_t x) { return uint32_t(std::min<uint64_t>(x, UINT32_MAX)); };
  check("v_msad_u8 v4, v1, v2, v3", [=](auto a, auto b, auto c) { return difference(a, b, 0, true) + c; });
  check("v_msad_u8 v4, v1, v2, v3 clamp",
        [=](auto a, auto b, auto c) { return bounded(uint64_t(difference(a, b, 0, true)) + c); });
  check("v_sad_u8 v4, v1, v2, v3 clamp",
        [=](auto a, auto b, auto c) { return bounded(uint64_t(difference(a, b, 0, false)) + c); });
  check("v_sad_hi_u8 v4, v1, v2, v3 clamp",
        [=](auto a, auto b, auto c) { return bounded((uint64_t(difference(a, b, 0, false)) << 16) + c); });
  check("v_sad_u16 v4, v1, v2, v3 clamp", [=](auto a, auto b, auto c) {
    const int64_t low = std::abs(int32_t(a & 0xffff) - int32_t(b & 0xffff));
    return bounded(uint64_t(low + std::abs(int32_t(a >> 16) - int32_t(b >> 16))) + c);
  });
  check("v_sad_u32 v4, v1, v2, v3 clamp",
        [=](auto a, auto b, auto c) { return bounded(uint64_t(std::max(a, b) - std::min(a, b)) + c); });
  for (bool masked : {false, true})
    for (bool clamped : {false, true})
      check_wide(std::string(masked ? "v_mqsad" : "v_qsad") + "_pk_u16_u8 v[8:9], v[2:3], v4, v[6:7]" +
                     (clamped ? " clamp" : ""),
                 [=](auto a, auto b, auto c) {
                   uint64_t result = 0;
                   for (uint32_t i = 0; i < 4; ++i) {
                     const uint32_t sum = difference(a, b, i, masked) + uint32_t(c >> 16 * i & 0xffff);
                     result |= uint64_t(clamped ? std::min(sum, 65535u) : sum % 65536) << 16 * i;
                   }
                   return result;
                 });
  for (emulator::SimdPath path : simd_paths())
    for (bool clamped : {false, true}) {
      TestWave t(path);
      std::mt19937 random(9);
      for (uint32_t r = 2; r <= 15; ++r)
        t.fill_lanes(r, [&](uint32_t) { return random_value(random); });
      t.run(std::string("v_mqsad_u32_u8 v[16:19], v[2:3], v4, v[8:11]") + (clamped ? " clamp" : ""));
      for (uint32_t lane = 0; lane < 64; ++lane)
        for (uint32_t i = 0; i < 4; ++i) {
          const uint64_t sum = uint64_t(difference(t.vv(2, lane), t.v(4, lane), i, true)) + t.v(8 + i, lane);
          CHECK(t.v(16 + i, lane) == (clamped ? bounded(sum) : uint32_t(sum)));
        }
    }
  check("v_lerp_u8 v4, v1, v2, v3", [=](auto a, auto b, auto c) {
    uint32_t result = 0;
    for (uint32_t i = 0; i < 4; ++i)
      result |= uint32_t(byte(a, i) + byte(b, i) + (byte(c, i) & 1)) / 2 << 8 * i;
    return result;
  });
}

TEST_CASE("CLAMP of whole numbers stops at the bounds of their type", "[isa][valu]") {
  auto u32 = [](int64_t x) { return uint32_t(std::clamp<int64_t>(x, 0, UINT32_MAX)); };
  auto i32 = [](int64_t x) { return uint32_t(std::clamp<int64_t>(x, INT32_MIN, INT32_MAX)); };
  auto clamp_u16 = [](int64_t x) { return uint32_t(std::clamp<int64_t>(x, 0, 65535)); };
  auto clamp_i16 = [](int64_t x) { return u16(uint32_t(std::clamp<int64_t>(x, -32768, 32767))); };
  auto u24 = [](uint32_t x) { return int64_t(x & 0xffffff); };
  auto i24 = [](uint32_t x) { return int64_t(int32_t(x << 8) >> 8); };
  check("v_add_co_u32_e64 v4, vcc, v1, v2 clamp", [=](auto a, auto b, auto) { return u32(int64_t(a) + b); });
  check("v_sub_co_u32_e64 v4, vcc, v1, v2 clamp", [=](auto a, auto b, auto) { return u32(int64_t(a) - b); });
  check("v_subrev_co_u32_e64 v4, vcc, v1, v2 clamp",
        [=](auto a, auto b, auto) { return u32(int64_t(b) - a); });
  const std::string carry = "s_mov_b64 s[6:7], -1\n";
  check(carry + "v_addc_co_u32_e64 v4, vcc, v1, v2, s[6:7] clamp",
        [=](auto a, auto b, auto) { return u32(int64_t(a) + b + 1); });
  check(carry + "v_subb_co_u32_e64 v4, vcc, v1, v2, s[6:7] clamp",
        [=](auto a, auto b, auto) { return u32(int64_t(a) - b - 1); });
  check(carry + "v_subbrev_co_u32_e64 v4, vcc, v1, v2, s[6:7] clamp",
        [=](auto a, auto b, auto) { return u32(int64_t(b) - a - 1); });
  check("v_mad_u32_u24 v4, v1, v2, v3 clamp",
        [=](auto a, auto b, auto c) { return u32(u24(a) * u24(b) + c); });
  check("v_mad_i32_i24 v4, v1, v2, v3 clamp",
        [=](auto a, auto b, auto c) { return i32(i24(a) * i24(b) + int32_t(c)); });
  check("v_mad_u32_u16 v4, v1, v2, v3 clamp",
        [=](auto a, auto b, auto c) { return u32(int64_t(u16(a)) * u16(b) + c); });
  check("v_mad_i32_i16 v4, v1, v2, v3 clamp",
        [=](auto a, auto b, auto c) { return i32(int64_t(i16(a)) * i16(b) + int32_t(c)); });
  check("v_mad_legacy_u16 v4, v1, v2, v3 clamp",
        [=](auto a, auto b, auto c) { return clamp_u16(int64_t(u16(a)) * u16(b) + u16(c)); });
  check("v_mad_legacy_i16 v4, v1, v2, v3 clamp",
        [=](auto a, auto b, auto c) { return clamp_i16(int64_t(i16(a)) * i16(b) + i16(c)); });
  check("v_mad_u16 v4, v1, v2, v3 clamp",
        [=](auto a, auto b, auto c) { return 0xdead0000 | clamp_u16(int64_t(u16(a)) * u16(b) + u16(c)); });
  check("v_mad_i16 v4, v1, v2, v3 clamp",
        [=](auto a, auto b, auto c) { return 0xdead0000 | clamp_i16(int64_t(i16(a)) * i16(b) + i16(c)); });
  check("v_subrev_u16_e64 v4, v1, v2 clamp",
        [=](auto a, auto b, auto) { return clamp_u16(int64_t(u16(b)) - u16(a)); });
  check("v_add_i16 v4, v1, v2 clamp", [=](auto a, auto b, auto) { return clamp_i16(i16(a) + i16(b)); });
  check("v_sub_i16 v4, v1, v2 clamp", [=](auto a, auto b, auto) { return clamp_i16(i16(a) - i16(b)); });
  auto both = [](auto half) {
    return [half](uint32_t a, uint32_t b, uint32_t c) {
      return half(u16(a), u16(b), u16(c)) | half(a >> 16, b >> 16, c >> 16) << 16;
    };
  };
  check("v_pk_mad_u16 v4, v1, v2, v3 clamp",
        both([=](auto a, auto b, auto c) { return clamp_u16(int64_t(a) * b + c); }));
  check("v_pk_mad_i16 v4, v1, v2, v3 clamp",
        both([=](auto a, auto b, auto c) { return clamp_i16(int64_t(i16(a)) * i16(b) + i16(c)); }));
  auto dot = [](uint32_t parts, bool is_signed) {
    return [=](uint32_t a, uint32_t b) {
      const uint32_t width = 32 / parts;
      int64_t sum = 0;
      for (uint32_t i = 0; i < parts; ++i) {
        auto part = [&](uint32_t x) {
          const int64_t value = x >> i * width & ((1u << width) - 1);
          return is_signed && value >> (width - 1) != 0 ? value - (int64_t(1) << width) : value;
        };
        sum += part(a) * part(b);
      }
      return sum;
    };
  };
  struct Dot {
    const char *name;
    uint32_t parts;
    bool is_signed;
  };
  for (const Dot &d :
       {Dot{"v_dot2_i32_i16", 2, true}, Dot{"v_dot2_u32_u16", 2, false}, Dot{"v_dot4_i32_i8", 4, true},
        Dot{"v_dot4_u32_u8", 4, false}, Dot{"v_dot8_i32_i4", 8, true}, Dot{"v_dot8_u32_u4", 8, false}}) {
    const auto sum = dot(d.parts, d.is_signed);
    check(std::string(d.name) + " v4, v1, v2, v3",
          [=](auto a, auto b, auto c) { return uint32_t(sum(a, b) + c); });
    check(std::string(d.name) + " v4, v1, v2, v3 clamp", [=](auto a, auto b, auto c) {
      return d.is_signed ? i32(sum(a, b) + int32_t(c)) : u32(sum(a, b) + c);
    });
  }
  __extension__ using Wide = __int128;
  check_wide("v_mad_u64_u32 v[8:9], vcc, v2, v4, v[6:7] clamp", [](auto a, auto b, auto c) {
    const Wide sum = Wide(uint32_t(a)) * uint32_t(b) + c;
    return sum > Wide(UINT64_MAX) ? UINT64_MAX : uint64_t(sum);
  });
  check_wide("v_mad_i64_i32 v[8:9], vcc, v2, v4, v[6:7] clamp", [](auto a, auto b, auto c) {
    const Wide sum = Wide(int32_t(a)) * int32_t(b) + int64_t(c);
    return uint64_t(int64_t(std::clamp<Wide>(sum, INT64_MIN, INT64_MAX)));
  });
  // The bit has no effect on results that cannot overflow.
  check("v_cvt_i32_f32_e64 v4, v1 clamp", [](auto a, auto, auto) {
    const double x = double(std::bit_cast<float>(a));
    return x != x ? 0 : uint32_t(int32_t(std::clamp(x, -2147483648.0, 2147483647.0)));
  });
}

} // namespace sluice::test
