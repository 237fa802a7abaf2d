//===- lanes_test.cpp - DPP, SDWA and exchanges through LDS's network -----------------------------------===//
#include <catch2/catch.hpp>

#include <optional>

#include "isa/wave_fixture.h"

namespace sluice::test {

namespace {

constexpr uint32_t untouched = 0xdeadbeef;

/// v_mov_b32_dpp of lane numbers: each lane must get the number `source` gives, or keep its old value.
void check_dpp(const std::string &control, const std::function<std::optional<uint32_t>(uint32_t)> &source,
               uint64_t exec = emulator::all_lanes) {
  for (emulator::SimdPath path : simd_paths()) {
    TestWave t(path);
    t.fill_lanes(1, [](uint32_t lane) { return 100 + lane; });
    t.fill(4, untouched);
    t.wave.set_exec(exec);
    t.run("v_mov_b32_dpp v4, v1 " + control);
    for (uint32_t lane = 0; lane < 64; ++lane) {
      INFO(control << " lane " << lane);
      const std::optional<uint32_t> from = (exec >> lane & 1) != 0 ? source(lane) : std::nullopt;
      const uint32_t moved = from.value_or(64) == 64 ? 0 : 100 + from.value_or(64);
      CHECK(t.v(4, lane) == (from ? moved : untouched));
    }
  }
}

} // namespace

TEST_CASE("DPP moves lanes within rows and across them", "[isa][dpp]") {
  const std::string all = " row_mask:0xf bank_mask:0xf";
  using Lane = std::optional<uint32_t>;
  check_dpp("quad_perm:[3,2,1,0]" + all, [](uint32_t i) -> Lane { return i ^ 3; });
  check_dpp("quad_perm:[0,0,2,2]" + all, [](uint32_t i) -> Lane { return i & ~1u; });
  check_dpp("row_shl:3" + all,
            [](uint32_t i) -> Lane { return i % 16 + 3 < 16 ? Lane(i + 3) : std::nullopt; });
  check_dpp("row_shr:3" + all, [](uint32_t i) -> Lane { return i % 16 >= 3 ? Lane(i - 3) : std::nullopt; });
  check_dpp("row_ror:5" + all, [](uint32_t i) -> Lane { return (i & 48) | ((i - 5) & 15); });
  check_dpp("wave_shl:1" + all, [](uint32_t i) -> Lane { return i < 63 ? Lane(i + 1) : std::nullopt; });
  check_dpp("wave_shr:1" + all, [](uint32_t i) -> Lane { return i > 0 ? Lane(i - 1) : std::nullopt; });
  check_dpp("wave_rol:1" + all, [](uint32_t i) -> Lane { return (i + 1) % 64; });
  check_dpp("wave_ror:1" + all, [](uint32_t i) -> Lane { return (i + 63) % 64; });
  check_dpp("row_mirror" + all, [](uint32_t i) -> Lane { return i ^ 15; });
  check_dpp("row_half_mirror" + all, [](uint32_t i) -> Lane { return i ^ 7; });
  check_dpp("row_bcast:15" + all,
            [](uint32_t i) -> Lane { return i < 16 ? std::nullopt : Lane((i & 48) - 1); });
  check_dpp("row_bcast:31" + all, [](uint32_t i) -> Lane { return i < 32 ? std::nullopt : Lane(31); });
  check_dpp("row_newbcast:6" + all, [](uint32_t i) -> Lane { return (i & 48) | 6; });
  // Lanes without a source get 0 with bound_ctrl; here 64 means no source.
  check_dpp("row_shl:3" + all + " bound_ctrl:0",
            [](uint32_t i) -> Lane { return i % 16 + 3 < 16 ? i + 3 : 64; });
  check_dpp("row_mirror row_mask:0xa bank_mask:0xf",
            [](uint32_t i) -> Lane { return (i / 16) % 2 == 1 ? Lane(i ^ 15) : std::nullopt; });
  check_dpp("row_mirror row_mask:0xf bank_mask:0x3",
            [](uint32_t i) -> Lane { return i % 16 < 8 ? Lane(i ^ 15) : std::nullopt; });
  // An inactive lane is not a source.
  constexpr uint64_t exec = 0x00ff'ffff'f0f0'ffff;
  check_dpp(
      "row_mirror" + all,
      [](uint32_t i) -> Lane { return exec >> (i ^ 15) & 1 ? Lane(i ^ 15) : std::nullopt; }, exec);
}

TEST_CASE("DPP reads its source before it writes, and takes modifiers", "[isa][dpp]") {
  for (emulator::SimdPath path : simd_paths()) {
    TestWave t(path);
    t.fill_lanes(1, [](uint32_t lane) { return lane; });
    t.run("v_add_u32_dpp v1, v1, v1 row_ror:1 row_mask:0xf bank_mask:0xf");
    for (uint32_t lane = 0; lane < 64; ++lane)
      CHECK(t.v(1, lane) == lane + ((lane & 48) | ((lane - 1) & 15)));

    t.fill_lanes(1, [](uint32_t lane) { return std::bit_cast<uint32_t>(lane % 2 == 0 ? 1.5f : -2.5f); });
    t.fill(2, 10.0f);
    t.run("v_add_f32_dpp v3, -|v1|, v2 quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf");
    for (uint32_t lane = 0; lane < 64; ++lane)
      CHECK(t.f(3, lane) == (lane % 2 == 0 ? 7.5f : 8.5f));
    t.fill_lanes(4, [](uint32_t lane) { return lane; });
    t.fill_lanes(5, [](uint32_t lane) { return 1000 + lane; });
    t.run("v_mov_b64_dpp v[6:7], v[4:5] row_newbcast:2 row_mask:0xf bank_mask:0xf");
    CHECK(t.v(6, 40) == 34);
    CHECK(t.v(7, 40) == 1034);
  }
}

TEST_CASE("a wave sums itself up with DPP", "[isa][dpp]") {
  TestWave t;
  t.fill_lanes(1, [](uint32_t lane) { return lane + 1; });
  t.run("v_add_u32_dpp v1, v1, v1 row_shr:1 row_mask:0xf bank_mask:0xf bound_ctrl:0\n"
        "v_add_u32_dpp v1, v1, v1 row_shr:2 row_mask:0xf bank_mask:0xf bound_ctrl:0\n"
        "v_add_u32_dpp v1, v1, v1 row_shr:4 row_mask:0xf bank_mask:0xf bound_ctrl:0\n"
        "v_add_u32_dpp v1, v1, v1 row_shr:8 row_mask:0xf bank_mask:0xf bound_ctrl:0\n"
        "v_add_u32_dpp v1, v1, v1 row_bcast:15 row_mask:0xa bank_mask:0xf\n"
        "v_add_u32_dpp v1, v1, v1 row_bcast:31 row_mask:0xc bank_mask:0xf\n"
        "v_readlane_b32 s4, v1, 63");
  CHECK(t.s(4) == 64 * 65 / 2);
}

TEST_CASE("SDWA selects parts of sources and places the result", "[isa][sdwa]") {
  for (emulator::SimdPath path : simd_paths()) {
    TestWave t(path);
    t.fill(1, 0x81c24384u);
    t.fill(2, 0x00010002u);
    auto result = [&](const std::string &text) {
      t.fill(4, untouched);
      t.run(text);
      return t.v(4, 17);
    };
    CHECK(
        result(
            "v_add_u32_sdwa v4, v1, v2 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:BYTE_0 src1_sel:DWORD") ==
        0x00010086);
    CHECK(result("v_add_u32_sdwa v4, sext(v1), v2 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:BYTE_3 "
                 "src1_sel:WORD_1") == 0xffffff82);
    CHECK(result("v_add_u32_sdwa v4, v1, v2 dst_sel:WORD_1 dst_unused:UNUSED_PAD src0_sel:WORD_1 "
                 "src1_sel:WORD_0") == 0x81c40000);
    CHECK(result("v_add_u32_sdwa v4, v1, v2 dst_sel:BYTE_1 dst_unused:UNUSED_PRESERVE src0_sel:BYTE_1 "
                 "src1_sel:BYTE_0") == 0xdead45ef);
    CHECK(result("v_add_u32_sdwa v4, v1, v2 dst_sel:WORD_0 dst_unused:UNUSED_SEXT src0_sel:WORD_1 "
                 "src1_sel:WORD_0") == 0xffff81c4);
    CHECK(result("v_mov_b32_sdwa v4, v1 dst_sel:WORD_1 dst_unused:UNUSED_PRESERVE src0_sel:WORD_0") ==
          0x4384beef);
    t.s(6) = 0x55;
    CHECK(
        result(
            "v_add_u32_sdwa v4, v1, s6 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:BYTE_2 src1_sel:DWORD") ==
        0x117);
    t.run("v_cmp_eq_u32_sdwa s[8:9], v1, v2 src0_sel:BYTE_0 src1_sel:BYTE_0");
    CHECK(t.ss(8) == 0);
    t.fill(2, 0x84u);
    t.run("v_cmp_eq_u32_sdwa vcc, v1, v2 src0_sel:BYTE_0 src1_sel:BYTE_0");
    CHECK(t.vcc() == emulator::all_lanes);
    // Half-precision parts.
    t.fill(1, uint32_t(support::f16_from_float(1.5f)) << 16 | 0x1234);
    t.fill(2, uint32_t(support::f16_from_float(-2.0f)));
    t.run("v_mul_f16_sdwa v4, -v1, v2 dst_sel:WORD_1 dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:WORD_0");
    CHECK(t.v(4) == uint32_t(support::f16_from_float(3.0f)) << 16);
  }
}

TEST_CASE("single lanes are read and written with any EXEC", "[isa][lanes]") {
  for (emulator::SimdPath path : simd_paths()) {
    TestWave t(path);
    t.fill_lanes(1, [](uint32_t lane) { return 100 + lane; });
    t.wave.set_exec(0xff00);
    t.run("v_readfirstlane_b32 s4, v1");
    CHECK(t.s(4) == 108);
    // Without any active lane it is lane 0; lane numbers wrap at 64.
    t.wave.set_exec(0);
    t.s(8) = 64 + 6;
    t.run("v_readfirstlane_b32 s4, v1\n v_readlane_b32 s5, v1, 63\n v_readlane_b32 s6, v1, s8\n "
          "v_writelane_b32 v1, 7, s8");
    CHECK(t.s(4) == 100);
    CHECK(t.s(5) == 163);
    CHECK(t.s(6) == 106);
    CHECK(t.v(1, 6) == 7);
    CHECK(t.v(1, 7) == 107);
  }
}

TEST_CASE("exchanges through the LDS network", "[isa][lds]") {
  TestWave t;
  t.fill_lanes(1, [](uint32_t lane) { return 500 + lane; });
  t.fill_lanes(2, [](uint32_t lane) { return ((lane * 7 + 3) % 64) * 4; });
  t.run("ds_bpermute_b32 v3, v2, v1\n ds_permute_b32 v4, v2, v1");
  for (uint32_t lane = 0; lane < 64; ++lane) {
    CHECK(t.v(3, lane) == 500 + (lane * 7 + 3) % 64);
    CHECK(t.v(4, (lane * 7 + 3) % 64) == 500 + lane);
  }
  // The offset counts; an inactive lane gives 0; addresses wrap.
  t.fill_lanes(2, [](uint32_t lane) { return lane * 4 + 256; });
  t.wave.set_exec(~uint64_t(2));
  t.run("ds_bpermute_b32 v3, v2, v1 offset:4");
  CHECK(t.v(3, 0) == 0);
  CHECK(t.v(3, 2) == 503);
  CHECK(t.v(3, 63) == 500);
  // All lanes send to lane 5: the highest wins, the others get 0.
  t.fill(2, 20u);
  t.run("ds_permute_b32 v4, v2, v1");
  CHECK(t.v(4, 5) == 563);
  CHECK(t.v(4, 6) == 0);

  t.wave.set_exec(emulator::all_lanes);
  t.run("ds_swizzle_b32 v5, v1 offset:swizzle(SWAP, 16)\n ds_swizzle_b32 v6, v1 offset:swizzle(QUAD_PERM, 1, "
        "0, 3, 2)\n"
        "ds_swizzle_b32 v7, v1 offset:swizzle(BROADCAST, 8, 3)\n ds_swizzle_b32 v8, v1 "
        "offset:swizzle(REVERSE, 32)");
  for (uint32_t lane = 0; lane < 64; ++lane) {
    CHECK(t.v(5, lane) == 500 + (lane ^ 16));
    CHECK(t.v(6, lane) == 500 + (lane ^ 1));
    CHECK(t.v(7, lane) == 500 + ((lane & ~7u) | 3));
    CHECK(t.v(8, lane) == 500 + (lane ^ 31));
  }
}

} // namespace sluice::test
