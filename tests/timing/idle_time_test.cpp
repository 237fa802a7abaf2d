//===- idle_time_test.cpp - why matrix cores wait -------------------------------------------------------===//
#include <catch2/catch.hpp>

#include <numeric>

#include "timing/timed_kernel.h"

namespace sluice::test {

using emulator::timing::InstructionTime;
using emulator::timing::Stall;

namespace {

const std::string mfma = "v_mfma_f32_16x16x16_f16 v[4:7], v[8:9], v[10:11], v[4:7]\n"; // 16 clk
const std::string exp2 = "v_exp_f32_e32 v3, v2\n";                                     // 16 clk of the port

/// The sums over all MFMAs.
InstructionTime idle(const TimingResult &result) {
  InstructionTime sum;
  for (const InstructionTime &time : result.instructions) {
    sum.idle_issuing_clk += time.idle_issuing_clk;
    for (size_t i = 0; i < sum.idle_clk.size(); ++i)
      sum.idle_clk[i] += time.idle_clk[i];
  }
  return sum;
}

uint64_t clk(const InstructionTime &time, Stall stall) {
  return time.idle_clk[size_t(stall)];
}

uint64_t all_of(const InstructionTime &time) {
  return std::accumulate(time.idle_clk.begin(), time.idle_clk.end(), time.idle_issuing_clk);
}

} // namespace

TEST_CASE("idle time is charged to the activity of the next user of the matrix core", "[timing]") {
  // An MFMA may follow 16 clk after another; each of these is later for a different reason.
  const InstructionTime waited = idle(time_program(aligned + mfma + "s_nop 15\n" + mfma + end_program));
  CHECK(clk(waited, Stall::nop) == 4 + 64 - 16);
  CHECK(all_of(waited) == 4 + 64 - 16);

  const InstructionTime issued =
      idle(time_program(aligned + mfma + repeat(9, "v_add_f32_e32 v1, v2, v2\n") + mfma + end_program));
  CHECK(issued.idle_issuing_clk == 4 + 9 * 4 - 16);
  CHECK(all_of(issued) == 4 + 9 * 4 - 16);

  const InstructionTime busy = idle(time_program(aligned + mfma + exp2 + exp2 + mfma + end_program));
  CHECK(clk(busy, Stall::pipe_busy) == 12 + 12 - 8); // the first 8 of them below the MFMA
  CHECK(all_of(busy) == 4 + 2 * 16 - 16);

  const InstructionTime twice =
      idle(time_program(aligned + mfma + "s_nop 15\n" + mfma + "s_nop 15\n" + mfma + end_program));
  CHECK(clk(twice, Stall::nop) == 2 * (4 + 64 - 16));
  CHECK(twice.idle_issuing_clk == 0);

  CHECK(all_of(idle(time_program(aligned + repeat(20, mfma) + end_program))) == 0);
}

TEST_CASE("a wave that fills another's gap takes it away", "[timing]") {
  // The first wave waits for 256 clk between its MFMAs; the other's MFMAs run in between.
  const TimingResult one =
      time_program(two_waves(mfma + repeat(4, "s_nop 15\n") + mfma, ""), {.waves = 8, .kernel = "small"});
  const TimingResult both = time_program(two_waves(mfma + repeat(4, "s_nop 15\n") + mfma, repeat(15, mfma)),
                                         {.waves = 8, .kernel = "small"});
  CHECK(clk(idle(one), Stall::nop) > 230);
  CHECK(all_of(idle(both)) < 40);
}

TEST_CASE("before a wave's first MFMA its workgroup starts", "[timing]") {
  const TimingResult result =
      time_program(aligned + repeat(10, "v_add_f32_e32 v1, v2, v2\n") + mfma + end_program);
  CHECK(result.idle.start == 188);
  CHECK(result.idle.before_first == 10 * 4);
  CHECK(all_of(idle(result)) == 0);
  // All of the SIMD's time is accounted for, including the second workgroup's start and beginning.
  const TimingResult two =
      time_program(aligned + repeat(10, "v_add_f32_e32 v1, v2, v2\n") + mfma + end_program,
                   {.waves = 4, .workgroups = 305, .lds_bytes = 65536}, {}, {.xcds = 1});
  // The second starts while the first one's MFMAs still run.
  CHECK(double(two.idle.start) == Approx(4 * 2 * 188).margin(4 * 16));
  CHECK(double(two.idle.before_first) == Approx(4 * 2 * 10 * 4).margin(4 * 2 * 4));
}

} // namespace sluice::test
