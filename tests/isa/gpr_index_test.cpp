//===- gpr_index_test.cpp - registers that M0 chooses, and the branch stack -----------------------------===//
#include <catch2/catch.hpp>

#include "isa/kernel_fixture.h"
#include "isa/wave_fixture.h"

namespace sluice::test {

namespace {

constexpr const char *end = "s_endpgm\n";

/// The dwords that a program of one wave stores, 64 lanes after another, from v1 on.
std::array<uint32_t, 64> stored(const std::string &source) {
  std::array<uint32_t, 64> data{};
  Memory memory;
  memory.attach(data.data(), sizeof data, true);
  const TestKernel kernel(
      "s_load_dwordx2 s[90:91], s[0:1], 0x0\n v_lshlrev_b32_e32 v50, 2, v0\n s_waitcnt lgkmcnt(0)\n" +
      source + "global_store_dword v50, v1, s[90:91]\n" + end);
  const LaunchResult result = kernel.run(memory, {reinterpret_cast<uint64_t>(data.data())});
  INFO(all_text(result));
  CHECK(result.ok());
  return data;
}

Report report_of(const std::string &source, ReportKind kind) {
  return only(TestKernel(source + end).run(Memory(), {}), kind);
}

} // namespace

TEST_CASE("M0 holds the index in bits 7:0 and the operands in bits 15:12", "[isa][gpr_index]") {
  TestWave t;
  t.s(emulator::sgpr_m0) = 0xabcd'ef12;
  t.s(4) = 0xffff'ff03;
  t.run("s_set_gpr_idx_on s4, gpr_idx(SRC0,DST)\n s_getreg_b32 s5, hwreg(HW_REG_MODE, 27, 1)");
  CHECK(t.s(emulator::sgpr_m0) == 0xabcd'9f03);
  CHECK(t.s(5) == 1);
  t.run("s_set_gpr_idx_mode gpr_idx(SRC1)\n");
  CHECK(t.s(emulator::sgpr_m0) == 0xabcd'2f03);
  t.run("s_set_gpr_idx_idx 0x107");
  CHECK(t.s(emulator::sgpr_m0) == 0xabcd'2f07);
  t.run("s_set_gpr_idx_off\n s_getreg_b32 s5, hwreg(HW_REG_MODE, 27, 1)");
  CHECK(t.s(5) == 0);
  CHECK(t.s(emulator::sgpr_m0) == 0xabcd'2f07);
}

TEST_CASE("the operands that M0 names are moved, the others are not", "[isa][gpr_index]") {
  for (emulator::SimdPath path : simd_paths()) {
    TestWave t(path);
    auto reset = [&] {
      for (uint32_t r = 0; r < 40; ++r)
        t.fill(r, 100 + r);
    };
    reset();
    t.s(4) = 5;
    t.run("s_set_gpr_idx_on s4, gpr_idx(SRC0)\n v_add_u32 v1, v2, v3\n v_add_u32 v10, s4, v3\n "
          "s_set_gpr_idx_off");
    CHECK(t.v(1) == 107 + 103);
    CHECK(t.v(10) == 5 + 103); // a scalar is not a vector register
    t.run("s_set_gpr_idx_on s4, gpr_idx(SRC1)\n v_add_u32 v1, v2, v3\n s_set_gpr_idx_off");
    CHECK(t.v(1) == 102 + 108);
    t.run("s_set_gpr_idx_on s4, gpr_idx(SRC2)\n v_add3_u32 v1, v2, v3, v4\n s_set_gpr_idx_off");
    CHECK(t.v(1) == 102 + 103 + 109);
    reset();
    t.run("s_set_gpr_idx_on s4, gpr_idx(DST)\n v_add_u32 v1, v2, v3\n s_set_gpr_idx_off");
    CHECK(t.v(1) == 101);
    CHECK(t.v(6) == 205);
    // Comparisons, pairs of registers, exchanges, bits and accumulation into the destination.
    reset();
    t.fill(7, 7u);
    t.run("s_set_gpr_idx_on s4, gpr_idx(SRC1)\n v_cmp_eq_u32 vcc, 7, v2\n s_set_gpr_idx_off");
    CHECK(t.vcc() == emulator::all_lanes);
    t.s(4) = 4;
    t.run("s_set_gpr_idx_on s4, gpr_idx(SRC0,DST)\n v_mov_b64 v[10:11], v[20:21]\n v_readfirstlane_b32 s5, "
          "v20\n"
          "v_mbcnt_lo_u32_b32 v30, -1, 0\n s_set_gpr_idx_off");
    CHECK(t.v(14) == 124);
    CHECK(t.v(15) == 125);
    CHECK(t.s(5) == 124);
    CHECK(t.v(34, 9) == 9);
    t.fill(14, 2.0f), t.fill(2, 3.0f), t.fill(3, 5.0f);
    t.run("s_set_gpr_idx_on s4, gpr_idx(DST)\n v_fmac_f32 v10, v2, v3\n s_set_gpr_idx_off");
    CHECK(t.f(14) == 17.0f);
    // Off again, and on by MODE only.
    reset();
    t.run("v_mov_b32 v1, v2\n s_setreg_imm32_b32 hwreg(HW_REG_MODE, 27, 1), 1\n s_set_gpr_idx_mode "
          "gpr_idx(SRC0)\n"
          "v_mov_b32 v3, v2");
    CHECK(t.v(1) == 102);
    CHECK(t.v(3) == 106);
  }
}

TEST_CASE("a source beyond the registers is v0, a destination beyond them is not written",
          "[isa][gpr_index]") {
  TestWave t;
  t.wave.vgpr_limit = 32;
  for (uint32_t r = 0; r < 64; ++r)
    t.fill(r, 100 + r);
  t.s(4) = 30;
  t.run("s_set_gpr_idx_on s4, gpr_idx(SRC0)\n v_mov_b32 v3, v1\n v_mov_b32 v4, v2\n v_mov_b64 v[6:7], "
        "v[2:3]\n s_set_gpr_idx_off");
  CHECK(t.v(3) == 131);
  CHECK(t.v(4) == 100);
  CHECK(t.v(6) == 100);
  t.run("s_set_gpr_idx_on s4, gpr_idx(DST)\n v_mov_b32 v1, 7\n v_mov_b32 v2, 7\n s_set_gpr_idx_off");
  CHECK(t.v(31) == 7);
  CHECK(t.v(32) == 132);
}

TEST_CASE("registers that M0 selects are checked", "[isa][gpr_index]") {
  const std::string on = "s_mov_b32 s4, 40\n s_set_gpr_idx_on s4, gpr_idx(DST)\n";
  const auto data = stored(on + "v_mov_b32 v2, 9\n s_set_gpr_idx_off\n v_mov_b32 v1, v42\n");
  CHECK(data[63] == 9);
  // Never written: v2, as seen without the index.
  const LaunchResult undefined =
      TestKernel("s_load_dwordx2 s[90:91], s[0:1], 0x0\n v_mov_b32 v50, 0\n s_waitcnt lgkmcnt(0)\n" + on +
                 "v_mov_b32 v2, 9\n s_set_gpr_idx_off\n global_store_dword v50, v2, s[90:91]\n" + end)
          .run(Memory(), {});
  bool found = false;
  for (const Report &report : undefined.reports)
    found = found || report.kind == ReportKind::register_uninitialised;
  CHECK(found);
  const LaunchShape small{.kernel = "small"};
  const Report report = only(TestKernel(on + "v_mov_b32 v2, 9\n" + end).run(Memory(), {}, small),
                             ReportKind::register_out_of_range);
  CHECK_THAT(report.message, Catch::Contains("M0 makes it use v42"));
  // A load in flight into the register that the index selects.
  const std::string load =
      "s_load_dwordx2 s[90:91], s[0:1], 0x0\n v_mov_b32_e32 v50, 0\n s_waitcnt lgkmcnt(0)\n";
  std::array<uint32_t, 64> data_in{};
  Memory memory;
  memory.attach(data_in.data(), sizeof data_in, true);
  const std::array<uint64_t, 8> arguments{reinterpret_cast<uint64_t>(data_in.data())};
  const std::string source = load +
                             "global_load_dword v45, v50, s[90:91]\n s_mov_b32 s4, 40\n"
                             "s_set_gpr_idx_on s4, gpr_idx(SRC0)\n v_mov_b32 v2, v5\n s_set_gpr_idx_off\n"
                             "s_waitcnt vmcnt(0)\n";
  const Report pending = only(TestKernel(source + end).run(memory, arguments), ReportKind::pending_register);
  CHECK_THAT(pending.message, Catch::StartsWith("reads v45"));
}

TEST_CASE("scalar moves relative to M0", "[isa][gpr_index]") {
  TestWave t;
  for (uint32_t r = 0; r < 102; ++r)
    t.s(r) = 100 + r;
  t.s(emulator::sgpr_m0) = 6;
  t.run("s_movrels_b32 s4, s10\n s_movreld_b32 s20, s11\n s_movrels_b64 s[30:31], s[10:11]\n s_movreld_b64 "
        "s[40:41], s[12:13]");
  CHECK(t.s(4) == 116);
  CHECK(t.s(26) == 111);
  CHECK(t.s(20) == 120);
  CHECK(t.ss(30) == (116 | uint64_t(117) << 32));
  CHECK(t.ss(46) == (112 | uint64_t(113) << 32));
  t.s(emulator::sgpr_m0) = 95;
  t.run("s_movrels_b32 s4, s10\n s_movreld_b32 s10, s11");
  CHECK(t.s(4) == 100);
  CHECK(t.s(emulator::sgpr_vcc) == 0);
  CHECK(t.s(105) == 0);
  const Report report =
      report_of("s_movk_i32 m0, 0x60\n s_nop 0\n s_movreld_b32 s10, s0\n", ReportKind::register_out_of_range);
  CHECK_THAT(report.message, Catch::Contains("M0 makes it use s106"));
  CHECK_THAT(report_of("s_movk_i32 m0, 0x8\n s_load_dword s20, s[0:1], 0x0\n s_movrels_b32 s10, s12\n "
                       "s_waitcnt lgkmcnt(0)\n",
                       ReportKind::pending_register)
                 .message,
             Catch::StartsWith("reads s20"));
}

TEST_CASE("the branch stack runs both sides and joins them", "[isa][branch_stack]") {
  // Lanes of the condition add 1, the others 2; at the join EXEC is that of the side that ran last.
  auto program = [](const std::string &fork, const std::string &condition) {
    return "v_mov_b32 v1, 0\n s_mov_b64 s[60:61], " + condition +
           "\n s_getpc_b64 s[62:63]\n anchor:\n s_add_u32 s62, s62, pass-anchor\n s_addc_u32 s63, s63, 0\n"
           "s_getreg_b32 s64, hwreg(HW_REG_MODE, 29, 3)\n" +
           fork +
           "v_add_u32 v1, 2, v1\n s_branch joined\n pass:\n v_add_u32 v1, 1, v1\n joined:\n s_cbranch_join "
           "s64\n s_mov_b64 exec, -1\n"
           "v_add_u32 v1, 10, v1\n";
  };
  for (const std::string fork :
       {"s_cbranch_g_fork s[60:61], s[62:63]\n", "s_cbranch_i_fork s[60:61], pass\n"}) {
    auto expect = [&](const std::string &condition, uint64_t lanes) {
      const auto data = stored(program(fork, condition));
      for (uint32_t lane = 0; lane < 64; ++lane)
        CHECK(data[lane] == ((lanes >> lane & 1) != 0 ? 11 : 12));
    };
    expect("0xffff", 0xffff);
    expect("-16", ~uint64_t(15));
    expect("0xfffffffe", 0xfffffffe);
    expect("-1", ~uint64_t(0));
    expect("0", 0);
  }
  CHECK_THAT(report_of("s_mov_b32 s4, 1\n s_cbranch_join s4\n", ReportKind::invalid_pc).message,
             Catch::StartsWith("the branch stack"));
}

TEST_CASE("hardware registers show where a workgroup runs and what it has", "[isa][hwreg]") {
  TestWave t;
  t.wave.id = 6;
  t.run("s_getreg_b32 s4, hwreg(HW_REG_HW_ID, 0, 6)\n s_getreg_b32 s5, hwreg(HW_REG_XCC_ID)\n s_getreg_b32 "
        "s6, hwreg(HW_REG_HW_ID, 8, 8)");
  CHECK(t.s(4) == (1 | 2 << 4)); // the second wave of SIMD 2
  CHECK(t.s(5) == 0);
  CHECK(t.s(6) == 0);
  t.wave.workgroup->number = 8 * (38 + 7) + 3; // on die 3, the 46th: one per unit, then the eighth again
  t.run("s_getreg_b32 s5, hwreg(HW_REG_XCC_ID)\n s_getreg_b32 s6, hwreg(HW_REG_HW_ID, 8, 4)\n"
        "s_getreg_b32 s7, hwreg(HW_REG_HW_ID, 13, 3)\n s_getreg_b32 s8, hwreg(HW_REG_HW_ID, 16, 4)");
  CHECK(t.s(5) == 3);
  CHECK(t.s(6) == 1);
  CHECK(t.s(7) == 3);
  CHECK(t.s(8) == 1);
  t.wave.vgpr_limit = 128;
  t.wave.sgpr_limit = 48;
  t.wave.workgroup->lds_bytes = 4096;
  t.run("s_getreg_b32 s4, hwreg(HW_REG_GPR_ALLOC, 8, 6)\n s_getreg_b32 s5, hwreg(HW_REG_GPR_ALLOC, 24, 4)\n"
        "s_getreg_b32 s6, hwreg(HW_REG_LDS_ALLOC, 12, 9)\n s_getreg_b32 s7, hwreg(HW_REG_TRAPSTS)\n"
        "s_getreg_b32 s8, hwreg(HW_REG_SQ_PERF_SNAPSHOT_DATA)");
  CHECK(t.s(4) == 128 / 8 - 1);
  CHECK(t.s(5) == 48 / 16 - 1);
  CHECK(t.s(6) == 8);
  CHECK(t.s(7) == 0);
  CHECK(t.s(8) == 0);
  t.wave.set_exec(0);
  t.s(emulator::sgpr_scc) = 1;
  t.run("s_getreg_b32 s4, hwreg(HW_REG_STATUS)");
  CHECK(t.s(4) == (1 | 1 << 9 | 1 << 10 | 1 << 16));
}

TEST_CASE("instructions for a debugger continue without one, and VSKIP stops", "[isa][scalar]") {
  const auto data = stored("v_mov_b32 v1, 3\n s_cbranch_cdbgsys out\n s_cbranch_cdbguser out\n s_setkill 0\n"
                           "v_mov_b32 v1, 4\n out:\n s_trap 3\n");
  CHECK(data[5] == 4);
  CHECK(TestKernel("s_setkill 1\n s_trap 2\n").run(Memory(), {}).ok());
  report_of("s_setreg_imm32_b32 hwreg(HW_REG_MODE, 28, 1), 1\n", ReportKind::unknown_instruction);
  report_of("s_trap 4\n", ReportKind::trap);
  for (const char *line :
       {"s_rfe_restore_b64 s[2:3], s4\n", "s_sendmsghalt sendmsg(MSG_INTERRUPT)\n", "s_setvskip s0, 1\n"})
    CHECK(report_of(line, ReportKind::unknown_instruction).message != "");
}

TEST_CASE("trap registers read as zero", "[isa][scalar]") {
  const auto data = stored("v_mov_b32 v1, ttmp5\n");
  CHECK(data[0] == 0);
}

} // namespace sluice::test
