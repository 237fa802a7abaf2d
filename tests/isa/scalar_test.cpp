//===- scalar_test.cpp - scalar instructions ------------------------------------------------------------===//
#include <catch2/catch.hpp>

#include "isa/wave_fixture.h"

namespace sluice::test {

namespace {

struct Case {
  const char *text; // sources s[8:9] and s[10:11], result s[4:5]
  uint64_t s0, s1;
  uint64_t expected;
  int scc; // -1: unchanged
  bool scc_before = false;
};

void check(const Case &c, bool wide) {
  TestWave t;
  t.wave.set_pair(8, c.s0);
  t.wave.set_pair(10, c.s1);
  t.wave.set_pair(4, 0);
  t.s(emulator::sgpr_scc) = c.scc_before;
  t.run(c.text);
  INFO(c.text << std::hex << " " << c.s0 << " " << c.s1);
  CHECK((wide ? t.ss(4) : t.s(4)) == c.expected);
  CHECK(t.scc() == (c.scc < 0 ? c.scc_before : c.scc != 0));
}

} // namespace

TEST_CASE("32-bit scalar arithmetic and SCC", "[isa][scalar]") {
  const Case cases[] = {
      {"s_add_u32 s4, s8, s10", 0xffffffff, 1, 0, 1},
      {"s_add_u32 s4, s8, s10", 2, 3, 5, 0, true},
      {"s_sub_u32 s4, s8, s10", 2, 3, 0xffffffff, 1},
      {"s_sub_u32 s4, s8, s10", 3, 2, 1, 0},
      {"s_add_i32 s4, s8, s10", 0x7fffffff, 1, 0x80000000, 1},
      {"s_add_i32 s4, s8, s10", 0xffffffff, 1, 0, 0},
      {"s_sub_i32 s4, s8, s10", 0x80000000, 1, 0x7fffffff, 1},
      {"s_addc_u32 s4, s8, s10", 0xffffffff, 0, 0, 1, true},
      {"s_addc_u32 s4, s8, s10", 0xfffffffe, 1, 0xffffffff, 0, false},
      {"s_subb_u32 s4, s8, s10", 0, 0, 0xffffffff, 1, true},
      {"s_subb_u32 s4, s8, s10", 5, 0xffffffff, 5, 1, true},
      {"s_subb_u32 s4, s8, s10", 5, 4, 0, 0, true},
      {"s_min_i32 s4, s8, s10", 0xffffffff, 1, 0xffffffff, 1},
      {"s_min_u32 s4, s8, s10", 0xffffffff, 1, 1, 0},
      {"s_max_i32 s4, s8, s10", 0xffffffff, 1, 1, 0},
      {"s_max_u32 s4, s8, s10", 0xffffffff, 1, 0xffffffff, 1},
      {"s_cselect_b32 s4, s8, s10", 7, 9, 7, -1, true},
      {"s_cselect_b32 s4, s8, s10", 7, 9, 9, -1, false},
      {"s_and_b32 s4, s8, s10", 6, 3, 2, 1},
      {"s_and_b32 s4, s8, s10", 4, 3, 0, 0, true},
      {"s_andn2_b32 s4, s8, s10", 6, 3, 4, 1},
      {"s_orn2_b32 s4, s8, s10", 0, 0xffffffff, 0, 0},
      {"s_nand_b32 s4, s8, s10", 6, 3, 0xfffffffd, 1},
      {"s_nor_b32 s4, s8, s10", 6, 3, 0xfffffff8, 1},
      {"s_xnor_b32 s4, s8, s10", 6, 3, 0xfffffffa, 1},
      {"s_lshl_b32 s4, s8, s10", 1, 33, 2, 1},
      {"s_lshr_b32 s4, s8, s10", 0x80000000, 31, 1, 1},
      {"s_ashr_i32 s4, s8, s10", 0x80000000, 31, 0xffffffff, 1},
      {"s_bfm_b32 s4, s8, s10", 5, 3, 0xf8, -1},
      {"s_mul_i32 s4, s8, s10", 0x10001, 0x10001, 0x20001, -1, true},
      {"s_mul_hi_u32 s4, s8, s10", 0xffffffff, 0xffffffff, 0xfffffffe, -1},
      {"s_mul_hi_i32 s4, s8, s10", 0xffffffff, 0xffffffff, 0, -1},
      {"s_bfe_u32 s4, s8, s10", 0x12345678, 8 | 12 << 16, 0x456, 1},
      {"s_bfe_i32 s4, s8, s10", 0x00000f00, 8 | 4 << 16, 0xffffffff, 1},
      {"s_bfe_u32 s4, s8, s10", 0x12345678, 16 | 32 << 16, 0x1234, 1},
      {"s_bfe_u32 s4, s8, s10", 0x12345678, 16, 0, 0},
      {"s_absdiff_i32 s4, s8, s10", 3, 10, 7, 1},
      {"s_lshl3_add_u32 s4, s8, s10", 0x20000000, 5, 5, 1},
      {"s_lshl2_add_u32 s4, s8, s10", 3, 5, 17, 0},
      {"s_pack_ll_b32_b16 s4, s8, s10", 0x11112222, 0x33334444, 0x44442222, -1},
      {"s_pack_lh_b32_b16 s4, s8, s10", 0x11112222, 0x33334444, 0x33332222, -1},
      {"s_pack_hh_b32_b16 s4, s8, s10", 0x11112222, 0x33334444, 0x33331111, -1},
      {"s_mov_b32 s4, 0x12345678", 0, 0, 0x12345678, -1},
      {"s_mov_b32 s4, -5", 0, 0, 0xfffffffb, -1, true},
      {"s_mov_b32 s4, 1.0", 0, 0, 0x3f800000, -1},
      {"s_cmov_b32 s4, s8", 3, 0, 0, -1, false},
      {"s_cmov_b32 s4, s8", 3, 0, 3, -1, true},
      {"s_not_b32 s4, s8", 0xffffffff, 0, 0, 0, true},
      {"s_brev_b32 s4, s8", 0x80000001, 0, 0x80000001, -1},
      {"s_brev_b32 s4, s8", 0x00000006, 0, 0x60000000, -1},
      {"s_bcnt0_i32_b32 s4, s8", 0xffffffff, 0, 0, 0},
      {"s_bcnt1_i32_b32 s4, s8", 0xf0f0, 0, 8, 1},
      {"s_bcnt1_i32_b64 s4, s[8:9]", 0xf0f0'0000'0001, 0, 9, 1},
      {"s_ff0_i32_b32 s4, s8", 0xffffffff, 0, 0xffffffff, -1},
      {"s_ff1_i32_b32 s4, s8", 0x100, 0, 8, -1},
      {"s_ff1_i32_b64 s4, s[8:9]", uint64_t(1) << 40, 0, 40, -1},
      {"s_flbit_i32_b32 s4, s8", 0x00010000, 0, 15, -1},
      {"s_flbit_i32 s4, s8", 0xffff0000, 0, 16, -1},
      {"s_flbit_i32_i64 s4, s[8:9]", ~uint64_t(0), 0, 0xffffffff, -1},
      {"s_sext_i32_i8 s4, s8", 0x1280, 0, 0xffffff80, -1},
      {"s_sext_i32_i16 s4, s8", 0x18000, 0, 0xffff8000, -1},
      {"s_abs_i32 s4, s8", 0xfffffffb, 0, 5, 1},
      {"s_mov_b32 s4, 0\n s_bitset1_b32 s4, s8", 35, 0, 8, -1},
      {"s_mov_b32 s4, -1\n s_bitset0_b32 s4, s8", 1, 0, 0xfffffffd, -1},
      {"s_wqm_b32 s4, s8", 0x00100002, 0, 0x00f0000f, 1},
      {"s_movk_i32 s4, -3", 0, 0, 0xfffffffd, -1},
      {"s_mov_b32 s4, s8\n s_addk_i32 s4, -1", 0x80000000, 0, 0x7fffffff, 1},
      {"s_mov_b32 s4, s8\n s_mulk_i32 s4, -2", 21, 0, 0xffffffd6, -1},
      {"s_getreg_b32 s4, hwreg(HW_REG_MODE, 4, 4)", 0, 0, 15, -1},
  };
  for (const Case &c : cases)
    check(c, false);
}

TEST_CASE("64-bit scalar operations", "[isa][scalar]") {
  constexpr uint64_t a = 0x8000'0001'0000'0003, b = 0x0f0f'0f0f'ffff'0001;
  const Case cases[] = {
      {"s_and_b64 s[4:5], s[8:9], s[10:11]", a, b, a & b, 1},
      {"s_or_b64 s[4:5], s[8:9], s[10:11]", a, b, a | b, 1},
      {"s_xor_b64 s[4:5], s[8:9], s[10:11]", a, a, 0, 0},
      {"s_andn2_b64 s[4:5], s[8:9], s[10:11]", a, b, a & ~b, 1},
      {"s_lshl_b64 s[4:5], s[8:9], s10", a, 33, a << 33, 1},
      {"s_lshr_b64 s[4:5], s[8:9], s10", a, 33, a >> 33, 1},
      {"s_ashr_i64 s[4:5], s[8:9], s10", a, 33, uint64_t(int64_t(a) >> 33), 1},
      {"s_bfe_u64 s[4:5], s[8:9], s10", a, 31 | 34 << 16, a >> 31, 1},
      {"s_bfe_i64 s[4:5], s[8:9], s10", a, 31 | 34 << 16, uint64_t(int64_t(a) >> 31), 1},
      {"s_bfm_b64 s[4:5], s8, s10", 40, 4, ((uint64_t(1) << 40) - 1) << 4, -1},
      {"s_cselect_b64 s[4:5], s[8:9], s[10:11]", a, b, b, -1},
      {"s_mov_b64 s[4:5], -2", 0, 0, ~uint64_t(1), -1},
      {"s_mov_b64 s[4:5], 0x80000000", 0, 0, 0x80000000, -1},
      {"s_mov_b64 s[4:5], exec", 0, 0, ~uint64_t(0), -1},
      {"s_not_b64 s[4:5], s[8:9]", a, 0, ~a, 1},
      {"s_brev_b64 s[4:5], s[8:9]", 1, 0, uint64_t(1) << 63, -1},
      {"s_wqm_b64 s[4:5], s[8:9]", uint64_t(1) << 63, 0, uint64_t(15) << 60, 1},
      {"s_bitreplicate_b64_b32 s[4:5], s8", 0x80000005, 0, 0xc000'0000'0000'0033, -1},
      {"s_mov_b64 s[4:5], src_shared_base", 0, 0, emulator::shared_aperture, -1},
  };
  for (const Case &c : cases)
    check(c, true);
}

TEST_CASE("scalar comparisons", "[isa][scalar]") {
  struct Row {
    const char *text;
    uint64_t s0, s1;
    bool expected;
  };
  const Row rows[] = {
      {"s_cmp_eq_i32 s8, s10", 1, 1, true},
      {"s_cmp_lg_u32 s8, s10", 1, 1, false},
      {"s_cmp_lt_i32 s8, s10", 0xffffffff, 0, true},
      {"s_cmp_lt_u32 s8, s10", 0xffffffff, 0, false},
      {"s_cmp_ge_i32 s8, s10", 3, 3, true},
      {"s_cmp_gt_u32 s8, s10", 3, 3, false},
      {"s_cmp_le_u32 s8, s10", 3, 3, true},
      {"s_cmp_gt_i32 s8, s10", 1, 0xffffffff, true},
      {"s_cmp_eq_u64 s[8:9], s[10:11]", uint64_t(1) << 40, uint64_t(1) << 40, true},
      {"s_cmp_lg_u64 s[8:9], s[10:11]", uint64_t(1) << 40, uint64_t(1) << 41, true},
      {"s_bitcmp1_b32 s8, s10", 8, 3, true},
      {"s_bitcmp0_b32 s8, s10", 8, 3, false},
      {"s_bitcmp1_b64 s[8:9], s10", uint64_t(1) << 50, 50, true},
      {"s_cmpk_lt_i32 s8, -1", 0xfffffffe, 0, true},
      {"s_cmpk_eq_u32 s8, 0xffff", 0xffff, 0, true},
      {"s_cmpk_gt_u32 s8, 0x8000", 0x7fff, 0, false},
  };
  for (const Row &row : rows) {
    TestWave t;
    t.wave.set_pair(8, row.s0);
    t.wave.set_pair(10, row.s1);
    t.s(emulator::sgpr_scc) = !row.expected;
    t.run(row.text);
    INFO(row.text);
    CHECK(t.scc() == row.expected);
  }
}

TEST_CASE("EXEC is saved and changed at once", "[isa][scalar]") {
  constexpr uint64_t exec = 0xffff0000ffff0000, mask = 0x00ffff00;
  struct Row {
    const char *name;
    uint64_t expected;
  };
  const Row rows[] = {{"s_and_saveexec_b64", mask & exec},    {"s_or_saveexec_b64", mask | exec},
                      {"s_xor_saveexec_b64", mask ^ exec},    {"s_andn2_saveexec_b64", mask & ~exec},
                      {"s_orn2_saveexec_b64", mask | ~exec},  {"s_nand_saveexec_b64", ~(mask & exec)},
                      {"s_nor_saveexec_b64", ~(mask | exec)}, {"s_xnor_saveexec_b64", ~(mask ^ exec)},
                      {"s_andn1_saveexec_b64", ~mask & exec}, {"s_orn1_saveexec_b64", ~mask | exec}};
  for (const Row &row : rows) {
    TestWave t;
    t.wave.set_exec(exec);
    t.wave.set_pair(8, mask);
    t.run(std::string(row.name) + " s[4:5], s[8:9]");
    INFO(row.name);
    CHECK(t.ss(4) == exec);
    CHECK(t.wave.exec() == row.expected);
    CHECK(t.scc() == (row.expected != 0));
  }
  TestWave t;
  t.wave.set_exec(exec);
  t.wave.set_pair(8, mask);
  t.run("s_andn1_wrexec_b64 s[4:5], s[8:9]");
  CHECK(t.ss(4) == (~mask & exec));
  CHECK(t.wave.exec() == (~mask & exec));
}

TEST_CASE("MODE can be written in parts", "[isa][scalar]") {
  TestWave t;
  t.run("s_setreg_imm32_b32 hwreg(HW_REG_MODE, 4, 2), 0");
  CHECK(t.wave.mode.denormal_32 == 0);
  CHECK(t.wave.mode.denormal_16_64 == 3);
  CHECK_FALSE(t.wave.mode_plain);
  t.fill(1, std::bit_cast<float>(0x00000100)); // subnormal
  t.fill(2, 1.0f);
  t.run("v_add_f32 v3, v1, v1\n v_max_f32 v4, v1, v1\n v_add_f32 v5, v2, v1");
  CHECK(t.v(3) == 0);
  CHECK(t.v(4) == 0);
  CHECK(t.f(5) == 1.0f);
  t.run("s_mov_b32 s4, 3\n s_setreg_b32 hwreg(HW_REG_MODE, 4, 2), s4\n v_add_f32 v3, v1, v1");
  CHECK(t.v(3) == 0x200);
  CHECK(t.wave.mode_plain);
  // Rounding up: 1 + 2^-30 is the next number.
  t.fill(1, 0x1p-30f);
  t.run("s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 2), 1\n v_add_f32 v3, v2, v1\n"
        "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 2), 0\n v_add_f32 v4, v2, v1");
  CHECK(t.v(3) == 0x3f800001);
  CHECK(t.v(4) == 0x3f800000);
}

} // namespace sluice::test
