//===- wait_states_test.cpp - instructions that follow each other too closely, and their twins ----------===//
//
// A missing wait state must be reported at the instruction that comes too early; the twin must stay silent.
//
//===----------------------------------------------------------------------------------------------------===//
#include <catch2/catch.hpp>

#include "isa/kernel_fixture.h"

namespace sluice::test {

namespace {

struct Buffers {
  Memory memory;
  uint32_t *data = static_cast<uint32_t *>(memory.allocate(64 << 10));
  Buffers() {
    for (uint32_t i = 0; i < (64 << 10) / 4; ++i)
      data[i] = i;
  }
  std::array<uint64_t, 8> arguments() const { return {reinterpret_cast<uint64_t>(data)}; }
};

/// Runs under every order of completion.
void expect_silence(const std::string &source) {
  const TestKernel kernel(source);
  for (CompletionOrder order : {CompletionOrder::late, CompletionOrder::early, CompletionOrder::random}) {
    Buffers buffers;
    Options options;
    options.completion = order;
    const LaunchResult result = kernel.run(buffers.memory, buffers.arguments(), {}, options);
    INFO(source << all_text(result));
    CHECK(result.ok());
  }
}

/// s[8:11]: a buffer resource over the data; v1: the work-item times 4.
const std::string setup = R"(
  s_load_dwordx2 s[8:9], s[0:1], 0x0
  s_mov_b32 s10, 0x10000
  s_mov_b32 s11, 0x00027000
  v_and_b32_e32 v0, 0x3ff, v0
  v_lshlrev_b32_e32 v1, 2, v0
  s_mov_b32 m0, 0
  s_waitcnt lgkmcnt(0)
)";
const std::string end = "s_endpgm\n";
const std::string copy = "buffer_load_dword v1, s[8:11], 0 offen lds\n";
const std::string wait_copy = "s_waitcnt vmcnt(0)\n";

const std::string zeros =
    "s_load_dwordx2 s[8:9], s[0:1], 0x0\n v_mov_b32_e32 v1, 0\n v_mov_b32_e32 v4, 0\n"
    "v_mov_b32_e32 v5, 0\n v_mov_b32_e32 v6, 0\n v_mov_b32_e32 v7, 0\n s_waitcnt lgkmcnt(0)\n"
    "v_mov_b32_e32 v12, 0x44\n v_mov_b32_e32 v13, s9\n s_nop 7\n";
struct Pair {
  std::string first;
  std::string second;
  uint32_t needed;
  HazardLevel level = HazardLevel::required;
};
constexpr HazardLevel compiler = HazardLevel::compiler;
constexpr HazardLevel waived = HazardLevel::waived;
const std::string long_mfma = "v_mfma_f32_32x32x8_f16 v[16:31], v[4:5], v[6:7], 0\n";
const std::string short_mfma = "v_mfma_f32_16x16x16_f16 v[16:19], v[4:5], v[6:7], 0\n";
const std::string single_mfma = "v_mfma_f32_16x16x4_f32 v[16:19], v4, v6, 0\n";
const std::string tiny_mfma = "v_mfma_f32_4x4x4_16b_f16 v[16:19], v[4:5], v[6:7], 0\n";
const std::string double_mfma = "v_mfma_f64_16x16x4_f64 v[16:23], v[4:5], v[6:7], 0\n";
const std::string sparse_mfma = "v_smfmac_f32_16x16x32_f16 v[16:19], v[4:5], v[8:11], v12\n";
const Pair pairs[] = {
    {long_mfma, "v_mov_b32_e32 v2, v31\n", 11},
    {short_mfma, "v_mov_b32_e32 v2, v16\n", 7},
    {single_mfma, "v_mov_b32_e32 v2, v16\n", 10},
    {tiny_mfma, "v_mov_b32_e32 v2, v16\n", 5},
    {short_mfma, "ds_write_b32 v1, v19\n s_waitcnt lgkmcnt(0)\n", 7},
    {short_mfma, "v_mov_b32_e32 v17, 0\n", 7},
    {short_mfma, "v_mfma_f32_16x16x16_f16 v[20:23], v[16:17], v[6:7], 0\n", 7},
    {tiny_mfma, "v_mfma_f32_4x4x4_16b_f16 v[16:19], v[4:5], v[6:7], v[16:19]\n", 2},
    {short_mfma, "v_mfma_f32_32x32x8_f16 v[32:47], v[4:5], v[6:7], v[14:29]\n", 5},
    {"v_mfma_f32_16x16x16_f16 v[20:23], v[4:5], v[6:7], v[16:19]\n", "v_mov_b32_e32 v17, 0\n", 3},
    {double_mfma, "v_mov_b32_e32 v2, v17\n", 11},
    {double_mfma, "ds_write_b32 v1, v17\n s_waitcnt lgkmcnt(0)\n", 18},
    {double_mfma, "v_fma_f64 v[2:3], v[4:5], v[4:5], v[6:7]\n", 2, compiler},
    {sparse_mfma, "v_mov_b32_e32 v2, v17\n", 7},
    {"v_mov_b32_e32 v12, 0x44\n", sparse_mfma, 2},
    {"v_mfma_i32_16x16x32_i8 v[20:23], v[4:5], v[6:7], v[16:19]\n",
     "global_load_dword v16, v1, s[8:9]\n s_waitcnt vmcnt(0)\n", 3, compiler},
    {short_mfma, "global_load_dword v16, v1, s[8:9]\n s_waitcnt vmcnt(0)\n", 7, compiler},
    {short_mfma, "ds_read_b32 v19, v1\n s_waitcnt lgkmcnt(0)\n", 7, compiler},
    {"v_mov_b32_e32 v5, 1.0\n", short_mfma, 2},
    {"v_cmpx_eq_u32_e32 vcc, 0, v1\n", short_mfma, 4},
    {"v_exp_f32_e32 v2, v4\n", "v_add_f32_e32 v3, v2, v2\n", 1},
    {"v_cmp_eq_u32_e32 vcc, 0, v1\n", "v_cndmask_b32_e32 v2, v4, v5, vcc\n", 2, waived},
    {"v_cmp_eq_u32_e64 s[6:7], 0, v1\n", "v_cndmask_b32_e64 v2, v4, v5, s[6:7]\n", 2, waived},
    {"v_cmp_eq_u32_e64 s[6:7], 0, v1\n", "v_mov_b32_e32 v2, s7\n", 2},
    {"v_cmp_eq_u32_e32 vcc, 0, v1\n", "v_addc_co_u32_e32 v2, vcc, v4, v5, vcc\n", 2, waived},
    {"v_cmp_eq_u32_e32 vcc, 0, v1\n", "v_subb_co_u32_e32 v2, vcc, v4, v5, vcc\n", 2, waived},
    {"v_cmp_eq_u32_e32 vcc, 0, v1\n", "v_mov_b32_e32 v2, vcc_lo\n", 2},
    {"v_cmpx_eq_u32_e32 vcc, 0, v1\n", "v_mov_b32_e32 v2, exec_lo\n", 2},
    {"v_cmp_eq_u32_e32 vcc, 0, v1\n", "v_div_fmas_f32 v2, v4, v5, v6\n", 4},
    {"v_readfirstlane_b32 s6, v1\n", "v_readlane_b32 s7, v1, s6\n", 4},
    {"v_mov_b32_e32 v2, 0\n", "v_readfirstlane_b32 s6, v2\n", 1},
    {"v_readfirstlane_b32 s6, v1\n", "v_writelane_b32 v2, s6, 0\n", 2},
    {"v_readfirstlane_b32 s6, v1\n", "v_writelane_b32 v2, 1, s6\n", 4},
    {"v_mov_b32_e32 v2, 0\n", "v_mov_b32_dpp v3, v2 row_mirror row_mask:0xf bank_mask:0xf\n", 2},
    {"v_cmpx_eq_u32_e32 vcc, 0, v1\n", "v_mov_b32_dpp v3, v1 row_mirror row_mask:0xf bank_mask:0xf\n", 5},
    {"v_readfirstlane_b32 s9, v13\n", "global_load_dword v2, v1, s[8:9]\n s_waitcnt vmcnt(0)\n", 5},
    {"v_add_u32_sdwa v2, v4, v5 dst_sel:WORD_1 dst_unused:UNUSED_PAD src0_sel:DWORD src1_sel:DWORD\n",
     "v_mov_b32_e32 v3, v2\n", 1},
    // The half also arrives late for an instruction that overwrites it.
    {"v_add_u32_sdwa v2, v4, v5 dst_sel:WORD_1 dst_unused:UNUSED_PAD src0_sel:DWORD src1_sel:DWORD\n",
     "v_mov_b32_e32 v2, 0\n", 1, compiler},
    {"v_mad_u16 v2, v4, v5, v6 op_sel:[0,0,0,1]\n", "v_mov_b32_e32 v3, v2\n", 1},
    {"v_cvt_pk_fp8_f32 v2, v4, v5 op_sel:[0,0,1]\n", "v_cvt_f32_fp8_sdwa v3, v2 src0_sel:BYTE_2\n", 1},
    {"v_cvt_sr_bf8_f32 v2, v4, v5 op_sel:[0,0,1,0]\n", "v_cvt_sr_bf8_f32 v2, v4, v5\n", 1},
    {"v_rcp_f16_e32 v2, v4\n", "v_add_f16_e32 v3, v2, v2\n", 1},
    {"v_cos_f16_e32 v2, v4\n", "v_add_f16_e32 v3, v2, v2\n", 1},
    {"global_store_dwordx4 v1, v[4:7], s[8:9]\n", "v_mov_b32_e32 v5, 0\n", 2},
    {"global_store_dwordx3 v1, v[4:6], s[8:9]\n", "v_mov_b32_e32 v6, 0\n", 2},
    {"s_movk_i32 m0, 0x1\n", "s_movrels_b32 s6, s7\n", 1},
    {"s_movk_i32 m0, 0x1\n", "s_movreld_b64 s[6:7], s[10:11]\n", 1},
    {"s_movk_i32 m0, 0x1\n", "s_ttracedata\n", 1, compiler},
    {"s_movk_i32 m0, 0x1\n", "s_sendmsg sendmsg(MSG_INTERRUPT)\n", 1},
    {"s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 2), 0\n", "s_getreg_b32 s6, hwreg(HW_REG_MODE)\n", 2},
    {"s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 2), 0\n", "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 2, 2), 0\n",
     2},
};

} // namespace

TEST_CASE("wait states that the hardware does not enforce", "[isa][checks]") {
  for (const Pair &pair : pairs) {
    auto with_states = [&](uint32_t states) {
      std::string nops;
      for (; states > 16; states -= 16)
        nops += "s_nop 15\n";
      if (states > 0) nops += "s_nop " + std::to_string(states - 1) + "\n";
      return TestKernel(zeros + pair.first + nops + pair.second + end);
    };
    const TestKernel too_early = with_states(pair.needed - 1);
    const TestKernel in_time = with_states(pair.needed);
    INFO(pair.first << pair.second);
    Buffers buffers;
    Options options;
    options.checks = Checks::none();
    options.checks.hazards = options.checks.hazards_compiler = options.checks.hazards_waived = true;
    const Report report =
        only(too_early.run(buffers.memory, buffers.arguments(), {}, options), ReportKind::hazard);
    CHECK_THAT(report.message, Catch::Contains(std::to_string(pair.needed) + " are needed"));
    CHECK(report.level == pair.level);
    CHECK(report.fails == (pair.level == HazardLevel::required));
    CHECK(pair.second.starts_with(report.disassembly));
    CHECK(pair.first.starts_with(report.other->disassembly));
    const LaunchResult silent = in_time.run(buffers.memory, buffers.arguments(), {}, options);
    INFO(all_text(silent));
    CHECK(silent.ok());
  }
  // Accumulating into the same registers needs nothing in between.
  expect_silence(zeros + long_mfma + "v_mfma_f32_32x32x8_f16 v[16:31], v[4:5], v[6:7], v[16:31]\n" + end);
  // A lane of a register that was just written may be written at once.
  expect_silence(zeros + "v_writelane_b32 v2, s4, 1\n v_writelane_b32 v2, s4, 2\n" + end);
  // Neither does a store of 64 bits, one with a scalar offset, one that reads half a result, or a conversion
  // to the low half.
  expect_silence(zeros + "global_store_dwordx2 v1, v[4:5], s[8:9]\n v_mov_b32_e32 v5, 0\n" + end);
  expect_silence(
      setup +
      "v_mov_b32_e32 v4, 0\n v_mov_b32_e32 v5, 0\n v_mov_b32_e32 v6, 0\n v_mov_b32_e32 v7, 0\n"
      "s_mov_b32 s14, 0\n buffer_store_dwordx4 v[4:7], v1, s[8:11], s14 offen\n v_mov_b32_e32 v5, 0\n" +
      end);
  expect_silence(zeros + "v_cvt_pk_fp8_f32 v4, v5, v6 op_sel:[0,0,1]\n global_store_dword v1, v4, s[8:9]\n" +
                 end);
  expect_silence(zeros + "v_cvt_pk_fp8_f32 v4, v5, v6\n v_cvt_f32_fp8_e32 v5, v4\n" + end);
  expect_silence("s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 2), 0\n s_getreg_b32 s6, hwreg(HW_REG_XCC_ID)\n" +
                 end);
}

TEST_CASE("wait states that AMD's own code does without are found by a check that is off", "[isa][checks]") {
  const std::string change_m0 = setup + "s_movk_i32 m0, 0x10\n";
  const TestKernel kernel(change_m0 + copy + wait_copy + end);
  auto reports = [&](const Checks &checks) {
    Buffers buffers;
    Options options;
    options.checks = checks;
    return kernel.run(buffers.memory, buffers.arguments(), {}, options).reports;
  };
  CHECK(reports(Checks::all()).empty());
  const std::vector<Report> found = reports(emulator::parse_checks("hazards_waived"));
  REQUIRE(found.size() == 1);
  CHECK(found[0].level == HazardLevel::waived);
  CHECK_FALSE(found[0].fails);
  CHECK_THAT(found[0].disassembly, Catch::StartsWith("buffer_load_dword"));
  CHECK_THAT(found[0].other->disassembly, Catch::StartsWith("s_movk_i32"));
  CHECK(emulator::static_reports(kernel.program).empty());
  CHECK(emulator::static_reports(kernel.program, /*with_waived=*/true).size() == 1);
  // By count too, it remains one of these.
  const TestKernel behind_a_barrier(
      setup + "v_cmp_eq_u32_e32 vcc, 0, v1\n s_barrier\n v_cndmask_b32_e32 v2, v1, v1, vcc\n" + end);
  CHECK(emulator::static_reports(behind_a_barrier.program).empty());
  const std::vector<Report> masked = emulator::static_reports(behind_a_barrier.program, /*with_waived=*/true);
  REQUIRE(masked.size() == 1);
  CHECK(masked[0].level == HazardLevel::waived);
}

TEST_CASE("wait states are missed on paths that no wave takes", "[isa][checks]") {
  // The branch is never taken, and its target comes too early for the matrix core's result.
  const std::string source = "v_mov_b32_e32 v4, 0\n v_mov_b32_e32 v5, 0\n s_nop 1\n"
                             "v_mfma_f32_32x32x8_f16 v[8:23], v[4:5], v[4:5], 0\n s_cmp_eq_u32 0, 1\n"
                             "s_cbranch_scc1 early\n s_nop 15\n early:\n v_add_f32_e32 v3, v8, v8\n" +
                             end;
  expect_silence(source);
  const std::vector<Report> found = emulator::static_reports(TestKernel(source).program);
  REQUIRE(found.size() == 1);
  CHECK_THAT(found[0].disassembly, Catch::StartsWith("v_add_f32"));
  CHECK_THAT(found[0].other->disassembly, Catch::StartsWith("v_mfma"));
  CHECK_THAT(found[0].message, Catch::Contains("written by the matrix core 2 wait states before, but 11"));
  // Instructions after a jump do not follow it.
  const std::string jump = "v_mov_b32_e32 v4, 0\n v_mov_b32_e32 v5, 0\n s_nop 1\n"
                           "v_mfma_f32_32x32x8_f16 v[8:23], v[4:5], v[4:5], 0\n s_branch over\n"
                           "v_add_f32_e32 v3, v8, v8\n over:\n s_nop 15\n";
  CHECK(emulator::static_reports(TestKernel(jump + end).program).empty());
  // A branch too long for its offset leads to its target.
  const std::string far = "v_mov_b32_e32 v4, 0\n v_mov_b32_e32 v5, 0\n s_nop 1\n"
                          "v_mfma_f32_32x32x8_f16 v[8:23], v[4:5], v[4:5], 0\n s_getpc_b64 s[6:7]\n"
                          "s_add_u32 s6, s6, lit(24)\n s_addc_u32 s7, s7, lit(0)\n s_setpc_b64 s[6:7]\n";
  const std::string reads = "v_add_f32_e32 v3, v8, v8\n";
  CHECK(emulator::static_reports(TestKernel(far + reads + "s_nop 15\n" + end).program).empty());
  CHECK(emulator::static_reports(TestKernel(far + "s_nop 15\n" + reads + end).program).size() == 1);
  // Around a loop: the end of the body before its start.
  const std::string loop = "s_mov_b32 s6, 1\n v_mov_b32_e32 v3, 0\n again:\n v_add_f32_e32 v4, v3, v3\n"
                           "s_sub_u32 s6, s6, 1\n s_cmp_lg_u32 s6, 0\n v_exp_f32_e32 v3, v4\n";
  CHECK(emulator::static_reports(TestKernel(loop + "s_cbranch_scc1 again\n" + end).program).empty());
  CHECK(emulator::static_reports(TestKernel(loop + "v_add_f32_e32 v5, v3, v3\n" + end).program).size() == 1);
}

TEST_CASE("the wait states that some path needs are known for each s_nop", "[isa][checks]") {
  using Expected = std::vector<std::pair<uint32_t, uint32_t>>; // given and needed
  auto states = [](const std::string &source) {
    Expected result;
    const TestKernel kernel(source + end);
    for (const emulator::NopStates &nop : emulator::nop_states(kernel.program))
      if (nop.pc < kernel.pc(1024)) // another kernel has its own
        result.emplace_back(nop.given, nop.needed);
    return result;
  };
  const std::string sources = "v_mov_b32_e32 v4, 0\n v_mov_b32_e32 v5, 0\n";
  const std::string mfma = "v_mfma_f32_32x32x8_f16 v[8:23], v[4:5], v[4:5], 0\n";
  const std::string use = "v_add_f32_e32 v3, v8, v8\n";
  CHECK(states(sources + "s_nop 1\n" + mfma) == Expected{{2, 2}});
  CHECK(states(sources + "s_nop 5\n v_add_f32_e32 v3, v4, v4\n") == Expected{{6, 0}});
  // 11 wait states between the product and its use; the instructions between them count.
  CHECK(states(sources + "s_nop 1\n" + mfma + "s_nop 15\n" + use) == Expected{{2, 2}, {16, 11}});
  CHECK(states(sources + "s_nop 1\n" + mfma + "v_mov_b32_e32 v3, 0\n s_nop 15\n" + use) ==
        Expected{{2, 2}, {16, 10}});
  // The first is reduced as far as the second, unchanged, allows; the second supplies the rest.
  CHECK(states(sources + "s_nop 1\n" + mfma + "s_nop 7\n s_nop 7\n" + use) ==
        Expected{{2, 2}, {8, 3}, {8, 8}});
  // Only the path through the branch needs it, or only the path around a loop.
  CHECK(states(sources + "s_nop 1\n" + mfma + "s_cbranch_scc1 late\n s_endpgm\n late:\n s_nop 15\n" + use) ==
        Expected{{2, 2}, {16, 10}});
  CHECK(states(sources + "s_mov_b32 s6, 1\n s_nop 1\n" + mfma +
               "s_nop 15\n again:\n v_add_f32_e32 v6, v24, v24\n s_nop 7\n s_sub_u32 s6, s6, 1\n"
               "s_cmp_lg_u32 s6, 0\n v_exp_f32_e32 v24, v7\n s_nop 0\n s_cbranch_scc1 again\n") ==
        Expected{{2, 1}, {16, 0}, {8, 0}, {1, 0}});
  CHECK(states("s_mov_b32 s6, 1\n again:\n s_nop 3\n v_add_f32_e32 v6, v24, v24\n s_sub_u32 s6, s6, 1\n"
               "s_cmp_lg_u32 s6, 0\n s_cbranch_scc1 again\n v_exp_f32_e32 v24, v7\n s_nop 4\n"
               "v_add_f32_e32 v6, v24, v24\n") == Expected{{4, 0}, {5, 1}});
  // Only LLVM requires wait states before a mask, and the manual requires none. Only LLVM requires them
  // before a load over a result, too, but there the manual is silent.
  const std::string masked = "v_cmp_eq_u32_e32 vcc, 0, v1\n s_nop 3\n v_cndmask_b32_e32 v3, v4, v5, vcc\n";
  CHECK(states(sources + masked) == Expected{{4, 0}});
  CHECK(states(sources + "s_nop 1\n" + mfma + "s_nop 15\n ds_read_b32 v8, v1\n") ==
        Expected{{2, 2}, {16, 11}});
  // A hazard that the code already has does not prevent reducing other s_nop. Unreachable code is left out.
  CHECK(states(sources + mfma + "s_nop 15\n" + use) == Expected{{16, 11}});
  CHECK(states("s_branch over\n s_nop 3\n over:\n") == Expected{});
}

} // namespace sluice::test
