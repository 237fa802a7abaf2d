//===- issue_test.cpp - which wave issues when ----------------------------------------------------------===//
//
// Expected clk are counted by hand from the constants: turns of four clk, what each instruction occupies, and
// the four clk of the s_endpgm at the end.
//
//===----------------------------------------------------------------------------------------------------===//
#include <catch2/catch.hpp>

#include "timing/timed_kernel.h"

namespace sluice::test {

namespace {

using emulator::timing::Pipe;
using emulator::timing::Stall;

const std::string mfma16 = "v_mfma_f32_16x16x16_f16 v[4:7], v[8:9], v[10:11], v[4:7]\n";
const std::string add = "v_add_f32_e32 v1, v2, v2\n";
const std::string exponential = "v_exp_f32_e32 v3, v2\n";

/// Clk from the first issue of a program that starts with a fetch to its end.
uint64_t clk_from_start(const std::string &body, const TimedShape &shape = {}) {
  return clk_of(body + end_program, shape);
}

} // namespace

TEST_CASE("an instruction waits for the pipe of its SIMD", "[timing]") {
  // Issues at 0, 4, ...; s_endpgm one turn after the last, and one turn of its own.
  CHECK(clk_from_start("") == 4);
  CHECK(clk_from_start(repeat(3, add)) == 3 * 4 + 4);
  CHECK(clk_from_start(repeat(3, "s_mov_b32 s8, 0\n")) == 3 * 4 + 4);
  // The next one may issue a turn after the second: it does not need the port.
  CHECK(clk_from_start(exponential + exponential) == 16 + 4 + 4);
  CHECK(clk_from_start(exponential + add) == 16 + 4 + 4);
  CHECK(clk_from_start(exponential + "s_mov_b32 s8, 0\n") == 4 + 4 + 4);
  CHECK(clk_from_start("v_mul_lo_u32 v1, v2, v2\n" + add) == 16 + 4 + 4);
  CHECK(clk_from_start(mfma16 + mfma16) == 16 + 4 + 4);
  CHECK(clk_from_start("v_mfma_f32_32x32x8_f16 v[0:15], v[16:17], v[18:19], v[0:15]\n" + mfma16) ==
        32 + 4 + 4);
}

TEST_CASE("a matrix instruction leaves the vector port free but for its own turn", "[timing]") {
  // In one fetch: at 0 the MFMA, at 4, 8, 12 the additions, at 16 the next MFMA.
  CHECK(clk_from_start(mfma16 + repeat(3, add) + mfma16) == 16 + 4 + 4);
  CHECK(clk_from_start(mfma16 + repeat(4, add) + mfma16) == 20 + 4 + 4);
  CHECK(clk_from_start(mfma16 + exponential + mfma16) == 20 + 4 + 4);
  SECTION("a sparse one takes two turns") {
    const std::string sparse = "v_smfmac_f32_16x16x32_f16 v[4:7], v[8:9], v[10:13], v14\n";
    CHECK(clk_from_start("v_mov_b32_e32 v14, 0x44444444\n" + sparse + add) == 4 + 8 + 4 + 4);
  }
  SECTION("single precision leaves nothing") {
    CHECK(clk_from_start("v_mfma_f32_16x16x4_f32 v[4:7], v8, v9, v[4:7]\n" + add) == 32 + 4 + 4);
  }
}

TEST_CASE("packed f32 never runs beside the matrix core", "[timing]") {
  const std::string packed = "v_pk_add_f32 v[12:13], v[14:15], v[16:17]\n";
  CHECK(clk_from_start(mfma16 + packed) == 16 + 8 + 4 + 4);
  CHECK(clk_from_start(packed + mfma16) == 4 + 4 + 4);
  CHECK(clk_from_start(packed + packed) == 4 + 4 + 4);
  SECTION("its result is late") {
    CHECK(clk_from_start(packed + "v_add_f32_e32 v1, v13, v2\n") == 8 + 4 + 4);
    CHECK(clk_from_start(packed + "v_add_f32_e32 v1, v14, v2\n") == 4 + 4 + 4);
  }
}

TEST_CASE("waves of a SIMD share its slots, oldest first", "[timing]") {
  const TimedShape two{.waves = 8};
  // The vector port is used each turn: twice the time. Scalar and vector instructions run in parallel.
  CHECK(clk_each(aligned, add, end_program, two) == 8);
  const std::string scalar = "s_mov_b32 s9, 0\n";
  const uint64_t vector_only = clk_of(two_waves(repeat(64, add), ""), two);
  CHECK(clk_of(two_waves(repeat(64, add), repeat(60, scalar)), two) == vector_only);
  CHECK(clk_of(two_waves(repeat(64, scalar), repeat(60, scalar)), two) > vector_only + 59 * 4);
  // The other three SIMDs have separate turns.
  CHECK(clk_each(aligned, add, end_program, {.waves = 4}) == 4);

  SECTION("the older one continues as if it were the only one") {
    const TimingResult result = time_program(two_waves(repeat(64, exponential), repeat(64, add)), two);
    // The younger one gets nothing until the older one ends: 64 * 16, then 64 * 4.
    const uint64_t clk = result.simulated[0].end - result.simulated[0].start;
    CHECK(clk >= 64 * 16 + 64 * 4);
    CHECK(clk <= 64 * 16 + 64 * 4 + 64);
    CHECK(result.stall_clk[size_t(Stall::pipe_busy)] >= 63 * 12 + 62 * 16);
  }
  SECTION("s_setprio has priority over age") {
    const std::string adds = repeat(64, add);
    const uint64_t older_first = clk_of(two_waves(adds + "s_nop 15\n", adds), two);
    const uint64_t younger_first = clk_of(two_waves(adds + "s_nop 15\n", "s_setprio 3\n" + adds), two);
    CHECK(younger_first >= older_first + 15 * 4);
  }
}

TEST_CASE("a wave held back by its own instructions", "[timing]") {
  CHECK(clk_from_start("s_nop 0\n" + add) == 4 + 4 + 4);
  CHECK(clk_from_start("s_nop 10\n" + add) == 44 + 4 + 4);
  CHECK(clk_from_start("s_sleep 2\n" + add) == 4 + 2 * 64 + 4 + 4);
  CHECK(clk_from_start("s_branch next\n s_nop 0\n next:\n" + add) == 16 + 4 + 4);
  CHECK(clk_from_start("s_cmp_eq_u32 0, 1\n s_cbranch_scc1 next\n s_nop 0\n next:\n" + add) == 4 * 4 + 4);
}

TEST_CASE("an instruction in two fetches comes a turn later", "[timing]") {
  const std::string long_add = "v_add_f32_e64 v1, v2, v2\n";
  CHECK(clk_each(aligned, long_add, end_program) == 4);
  CHECK(clk_each(misaligned, long_add, end_program) == 5);
  CHECK(clk_each(misaligned, add, end_program) == 4);
  // After an exponential it is hidden.
  CHECK(clk_each(misaligned, exponential + long_add, end_program) == 20);
  const TimingResult result = time_program(misaligned + repeat(64, long_add) + end_program);
  CHECK(result.stall_clk[size_t(Stall::fetch)] == 16 * 4);
}

TEST_CASE("a barrier lets waves go some clk after the last one's arrival", "[timing]") {
  const TimedShape two{.waves = 8};
  const std::string busy = repeat(40, "s_nop 15\n");
  // The younger one arrives 40 * 64 clk later.
  const uint64_t without = clk_of(two_waves(add, busy + add), two);
  const uint64_t with = clk_of(two_waves("s_nop 0\n" + add, busy + "s_nop 0\n" + add), two);
  CHECK(with == without + 4);
  const std::string all_meet = "v_readfirstlane_b32 s8, v0\n s_lshr_b32 s8, s8, 6\n s_cmp_eq_u32 s8, 3\n"
                               "s_cbranch_scc0 meet\n" +
                               repeat(10, "s_nop 15\n") + "meet:\n s_barrier\n";
  const TimingResult result = time_program(all_meet + end_program, {.waves = 4});
  // Three waves take the branch (16) and wait for the fourth, which runs ten s_nop (640) after it (4). Each
  // wave may wait up to 3 clk for its SIMD's turn.
  CHECK(double(result.stall_clk[size_t(Stall::barrier)]) ==
        Approx(3 * (4 + 640 - 16) + 4 * (20 - 4)).margin(7 * 3));
  // The barrier does not wait for a wave that has ended: before the others arrive, or after.
  CHECK(clk_of(two_waves("s_barrier\n", busy), two) > 40 * 64);
  CHECK(clk_of(two_waves("s_barrier\n", "s_barrier\n"), two) < 200);
}

TEST_CASE("pipes are busy with the issued instructions", "[timing]") {
  const TimingResult result = time_program(repeat(5, mfma16) + repeat(7, add) + exponential + end_program);
  CHECK(result.busy_clk[size_t(Pipe::matrix)] == 5 * 16);
  CHECK(result.busy_clk[size_t(Pipe::valu)] == 7 * 4);
  CHECK(result.busy_clk[size_t(Pipe::transcendental)] == 16);
  CHECK(result.wave_instructions == 14);
  CHECK(result.simulated[0].flops == 5 * 2 * 16 * 16 * 16);
  CHECK(result.simulated_mfma_percent() == Approx(100.0 * 80 / (4.0 * double(result.simulated_clk))));
}

TEST_CASE("kernels can read the modelled clock", "[timing]") {
  Memory memory;
  auto *out = static_cast<uint64_t *>(memory.allocate(64));
  time_program(
      "s_load_dwordx2 s[8:9], s[0:1], 0x0\n s_memtime s[12:13]\n" + repeat(10, "s_nop 15\n") +
          "s_memtime s[14:15]\n s_waitcnt lgkmcnt(0)\n s_sub_u32 s12, s14, s12\n v_mov_b32_e32 v1, s12\n"
          "v_mov_b32_e32 v2, 0\n global_store_dword v2, v1, s[8:9]\n s_endpgm\n",
      {}, {reinterpret_cast<uint64_t>(out)}, {}, memory);
  CHECK(uint32_t(*out) == 10 * 64 + 4);
}

TEST_CASE("a wave that cannot go on is reported", "[timing]") {
  const emulator::Program program(code_object_of("s_trap 2\n s_endpgm\n"));
  const std::array<uint64_t, 8> arguments{};
  const Memory memory;
  const TimingResult result = emulator::timing::time_launch(program, "small", {1, 1, 1}, {64, 1, 1}, 0,
                                                            std::as_bytes(std::span(arguments)), memory);
  REQUIRE(result.reports.size() == 1);
  CHECK(result.reports[0].kind == ReportKind::trap);
}

TEST_CASE("an endless program is stopped", "[timing]") {
  const emulator::Program program(code_object_of("again:\n s_branch again\n"));
  const std::array<uint64_t, 8> arguments{};
  const Memory memory;
  const TimingResult result = emulator::timing::time_launch(program, "small", {1, 1, 1}, {64, 1, 1}, 0,
                                                            std::as_bytes(std::span(arguments)), memory,
                                                            {.instruction_budget = 1000});
  REQUIRE(result.reports.size() == 1);
  CHECK(result.reports[0].kind == ReportKind::budget_exhausted);
}

} // namespace sluice::test
