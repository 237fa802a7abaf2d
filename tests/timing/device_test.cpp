//===- device_test.cpp - workgroups, occupancy, the whole device ----------------------------------------===//
#include <catch2/catch.hpp>

#include <nlohmann/json.hpp>

#include "timing/timed_kernel.h"
#include "timing_report/report.h"

namespace sluice::test {

namespace {

const std::string nops = repeat(100, "s_nop 15\n") + end_program; // 100 * 64 + 4 clk
constexpr uint64_t nops_clk = 6404;
constexpr uint64_t start_clk = 188;

/// Each workgroup may wait 3 clk for its SIMD's turn.
Approx about(uint64_t clk, uint64_t workgroups) {
  return Approx(double(clk)).margin(3.0 * double(workgroups));
}

} // namespace

TEST_CASE("a launch takes as many rounds as workgroups need", "[timing]") {
  const auto device_clk = [](uint32_t workgroups, uint32_t lds_bytes) {
    return double(time_program(nops, {.workgroups = workgroups, .lds_bytes = lds_bytes}).device_clk);
  };
  // One at a time on a compute unit: 304 of them.
  CHECK(device_clk(1, 65536) == start_clk + nops_clk);
  CHECK(device_clk(304, 65536) == start_clk + nops_clk);
  CHECK(device_clk(305, 65536) == about(2 * (start_clk + nops_clk), 2));
  CHECK(device_clk(608, 65536) == about(2 * (start_clk + nops_clk), 2));
  // Two at a time; waves that only wait do not slow one another down.
  CHECK(device_clk(608, 32768) == about(start_clk + nops_clk, 1));
}

TEST_CASE("the tail counts the places without workgroups", "[timing]") {
  const auto tail_percent = [](uint32_t workgroups) {
    return time_program(nops, {.workgroups = workgroups, .lds_bytes = 65536}).tail_percent();
  };
  CHECK(tail_percent(304) == about(0, 1));
  CHECK(tail_percent(305) == about(100.0 * 303 / 608, 1));
}

TEST_CASE("workgroups that fit on a compute unit start together", "[timing]") {
  const TimingResult small = time_program(nops, {.waves = 4, .workgroups = 304 * 8}, {}, {.xcds = 1});
  CHECK(small.workgroups_per_cu == 8);
  CHECK(small.waves_per_simd == 8);
  CHECK(small.simulated.size() == 8);
  CHECK(small.simulated.back().start == start_clk);
  const TimingResult large = time_program(nops, {.waves = 4, .workgroups = 304 * 8, .kernel = "slot"});
  CHECK(large.workgroups_per_cu == 1);
  CHECK(std::string(large.occupancy_limit) == "vgprs");
  CHECK(double(large.simulated.back().start) == about(7 * (start_clk + nops_clk) + start_clk, 7));
}

TEST_CASE("a wave starts on the SIMD with the fewest", "[timing]") {
  // The last of the four workgroups that start together ends at once: the fifth takes its SIMD.
  const std::string source = "s_cmp_eq_u32 s2, 912\n s_cbranch_scc1 end\n" +
                             repeat(500, "v_add_f32_e32 v1, v2, v2\n") + "end:\n s_endpgm\n";
  const TimingResult result = time_program(source, {.workgroups = 1217, .lds_bytes = 16384}, {}, {.xcds = 1});
  REQUIRE(result.simulated.size() == 5);
  REQUIRE(result.simulated[3].number == 912);
  for (size_t i : {0, 1, 2, 4})
    CHECK(double(result.simulated[i].end - result.simulated[i].start) == about(500 * 4 + 3 * 4, 1));
}

TEST_CASE("workgroups go to XCDs in turn, and there to compute units", "[timing]") {
  const TimedShape shape{.workgroups = 1000, .lds_bytes = 65536};
  const TimingResult all = time_program(nops, shape, {}, {.compute_units = 38, .xcds = 8});
  REQUIRE(all.simulated.size() == 1000);
  CHECK(all.is_complete);
  for (uint64_t number = 0; number < 304; ++number) {
    CHECK(all.simulated[number].number == number);
    CHECK(all.simulated[number].compute_unit == number % 8 * 38 + number / 8);
  }
  for (uint64_t number = 0; number < 1000; ++number)
    CHECK(all.simulated[number].compute_unit / 38 == number % 8);
  const TimingResult two = time_program(nops, shape, {}, {.compute_units = 38, .xcds = 2});
  CHECK(two.simulated.size() == 250);
  for (const auto &time : two.simulated)
    CHECK(time.compute_unit / 38 == time.number % 8);
}

TEST_CASE("the device's TFLOPS count all its MFMAs", "[timing]") {
  const std::string mfma = "v_mfma_f32_16x16x16_f16 v[4:7], v[8:9], v[10:11], v[4:7]\n";
  const TimingResult result = time_program(repeat(100, mfma) + end_program, {.waves = 4, .workgroups = 304});
  CHECK(result.device_flops == 304.0 * 4 * 100 * 2 * 16 * 16 * 16);
  CHECK(result.device_matrix_clk == 304.0 * 4 * 100 * 16);
  CHECK(result.device_mfma_percent() == Approx(100 * 1600.0 / double(result.device_clk)));
  CHECK(result.tflops() == Approx(result.device_flops / (double(result.device_clk) / 2.1e9) * 1e-12));
}

TEST_CASE("the same launch takes the same time", "[timing]") {
  const std::string source =
      repeat(20, "v_exp_f32_e32 v3, v2\n v_add_f32_e32 v1, v2, v2\n s_barrier\n") + end_program;
  const TimedShape shape{.waves = 8, .workgroups = 1000};
  const TimingResult first = time_program(source, shape);
  CHECK(timing_report::to_json(first) == timing_report::to_json(time_program(source, shape)));
}

TEST_CASE("launches that cannot be timed are refused", "[timing]") {
  CHECK_THROWS_AS(time_program(end_program, {}, {}, {.compute_units = 0}), std::invalid_argument);
  CHECK_THROWS_AS(time_program(end_program, {}, {}, {.compute_units = 39}), std::invalid_argument);
  CHECK_THROWS_AS(time_program(end_program, {}, {}, {.compute_unit_stride = 0}), std::invalid_argument);
  CHECK_THROWS_WITH(time_program(end_program, {}, {}, {.compute_units = 5, .compute_unit_stride = 10}),
                    "compute_unit_stride is 10; with it 5 compute units must be among the 38 of an XCD");
  CHECK_NOTHROW(time_program(end_program, {}, {}, {.compute_units = 5, .compute_unit_stride = 9}));
  CHECK_THROWS_WITH(time_program(end_program, {}, {}, {.xcds = 9}),
                    "9 XCDs to be simulated; the device has 8");
  CHECK_THROWS_AS(time_program(end_program, {.waves = 8, .kernel = "slot"}), std::invalid_argument);
}

} // namespace sluice::test
