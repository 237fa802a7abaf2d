//===- extrapolation_test.cpp - the simulated workgroups, and estimates for the others ------------------===//
//
// The expected result of a sample is that of simulating a whole XCD.
//
//===----------------------------------------------------------------------------------------------------===//
#include <catch2/catch.hpp>

#include <algorithm>
#include <array>
#include <set>

#include "timing/timed_kernel.h"

namespace sluice::test {

namespace {

constexpr uint32_t xcd_compute_units = 38;
constexpr TimingOptions whole_xcd{.compute_units = xcd_compute_units, .xcds = 1};
constexpr TimingOptions whole_device{.compute_units = xcd_compute_units, .xcds = 8};

/// `count` leaves in s9 how often the workgroup (s2, s3, s4) waits for 640 clk.
std::string work(const std::string &count) {
  return count + "loop:\n" + repeat(10, "s_nop 15\n") +
         "s_sub_u32 s9, s9, 1\n s_cmp_lg_u32 s9, 0\n s_cbranch_scc1 loop\n s_endpgm\n";
}

uint64_t length(const emulator::timing::WorkgroupTime &time) {
  return time.end - time.start;
}

std::set<uint64_t> coordinates(const TimingResult &result, uint64_t below, uint64_t extent) {
  std::set<uint64_t> found;
  for (const auto &time : result.simulated)
    found.insert(time.number / below % extent);
  return found;
}

} // namespace

TEST_CASE("durations follow the coordinate that the work follows", "[timing]") {
  struct Case {
    std::string along, count;
    std::array<uint32_t, 3> grid;
    double error = 0.03;
  };
  const Case cases[] = {
      {"x", "s_add_u32 s9, s2, 1\n", {63, 6, 3}},
      {"y", "s_add_u32 s9, s3, 1\n", {16, 24, 3}},
      {"y", "s_sub_u32 s9, 24, s3\n", {16, 24, 3}},
      {"z", "s_add_u32 s9, s4, 1\n", {16, 3, 24}},
      // The square: linear interpolation between samples only comes near it.
      {"y", "s_mul_i32 s9, s3, s3\n s_lshr_b32 s9, s9, 3\n s_add_u32 s9, s9, 1\n", {16, 24, 3}},
      {"number",
       "s_lshl_b32 s9, s4, 3\n s_add_u32 s9, s9, s3\n s_add_u32 s9, s9, 1\n",
       {16, 8, 9},
       0.05}, // no sample is at its end
      {"none", "s_mov_b32 s9, 12\n", {16, 24, 3}},
      // Pseudo-random: up to seven more, by a product of x, y and z.
      {"none",
       "s_mul_i32 s9, s2, 40503\n s_mul_i32 s10, s3, 30011\n s_add_u32 s9, s9, s10\n s_mul_i32 s10, s4, "
       "20011\n"
       "s_add_u32 s9, s9, s10\n s_lshr_b32 s9, s9, 7\n s_and_b32 s9, s9, 7\n s_add_u32 s9, s9, 50\n",
       {15, 24, 3},
       0.1}, // the last one takes longer than the mean
  };
  for (const Case &c : cases) {
    CAPTURE(c.along, c.count);
    const TimedShape shape{.kernel = "slot", .grid = c.grid};
    const TimingResult all = time_program(work(c.count), shape, {}, whole_device);
    REQUIRE(all.simulated.size() == all.workgroups);
    CHECK(all.is_complete);
    CHECK(all.device_clk == all.simulated_clk);
    for (const uint32_t compute_units : {1u, 4u}) {
      const TimingResult some =
          time_program(work(c.count), shape, {}, {.compute_units = compute_units, .workgroups = 8});
      CHECK(some.simulated.size() == 8 * compute_units);
      CHECK(some.extrapolated_along == c.along);
      CHECK(double(some.device_clk) == Approx(double(all.simulated_clk)).epsilon(c.error));
      CHECK(some.device_occupied_clk == Approx(all.device_occupied_clk).epsilon(c.error));
    }
  }
}

TEST_CASE("a sample is spread evenly along each axis", "[timing]") {
  // 304 * 10 workgroups and more: a sample of the middle.
  const TimingResult result =
      time_program(end_program, {.kernel = "slot", .grid = {10, 64, 7}}, {}, {.workgroups = 4});
  CHECK(coordinates(result, 1, 10) == std::set<uint64_t>{0, 3, 6, 9});
  CHECK(coordinates(result, 10, 64) == std::set<uint64_t>{0, 21, 42, 63});
  CHECK(coordinates(result, 640, 7) == std::set<uint64_t>{0, 2, 4, 6});
  const TimingResult middle =
      time_program(end_program, {.kernel = "slot", .grid = {11, 61, 7}}, {}, {.workgroups = 1});
  REQUIRE(middle.simulated.size() == 1);
  CHECK(middle.simulated[0].number == 5 + 11 * (30 + 61 * 3));
}

TEST_CASE("a sample is never larger than the launch", "[timing]") {
  const TimingResult result = time_program(end_program, {.kernel = "slot", .grid = {3, 2, 1}}, {},
                                           {.compute_units = 4, .workgroups = 5});
  CHECK(result.simulated.size() == 6);
  CHECK(coordinates(result, 1, 6).size() == 6);
}

TEST_CASE("simulated compute units have the dispatcher's neighbours", "[timing]") {
  const TimingResult sample = time_program(end_program, {.kernel = "slot", .grid = {64, 64, 1}}, {},
                                           {.compute_units = 3, .compute_unit_stride = 8, .workgroups = 1});
  REQUIRE(sample.simulated.size() == 3);
  for (uint32_t i = 0; i < 3; ++i)
    CHECK(sample.simulated[i].number == 31 + 64 * (31 + i));
}

TEST_CASE("without a sample the whole grid is simulated, not one XCD's share", "[timing]") {
  // The tile of queries along x: with 16 of them XCD 0 has the tiles 0 and 8, and its first compute unit tile
  // 0 only.
  for (const uint32_t tiles : {4u, 16u, 19u}) {
    CAPTURE(tiles);
    const std::string source = work("s_add_u32 s9, s2, 1\n");
    const TimedShape shape{.kernel = "slot", .grid = {tiles, 64, 2}};
    const TimingResult all = time_program(source, shape, {}, whole_device);
    for (const TimingOptions &options :
         {TimingOptions{}, TimingOptions{.compute_units = 4}, TimingOptions{.compute_units = 38}}) {
      const TimingResult result = time_program(source, shape, {}, options);
      CHECK(double(result.device_clk) == Approx(double(all.device_clk)).epsilon(0.01));
      CHECK(std::string(result.extrapolated_along) == "x");
      for (size_t i = 0; i < 8; ++i)
        CHECK(result.xcds[i].end_clk == Approx(all.xcds[i].end_clk).epsilon(0.01));
    }
  }
}

TEST_CASE("XCDs that get other workgroups end at other times, and the launch with the last", "[timing]") {
  const TimingResult result = time_program(work("s_and_b32 s9, s2, 7\n s_add_u32 s9, s9, 1\n"),
                                           {.kernel = "slot", .grid = {8, 152, 1}});
  REQUIRE(result.xcds.size() == 8);
  double mean = 0;
  for (size_t i = 0; i < 8; ++i) {
    CHECK(result.xcds[i].workgroups == 152);
    // Four at a time on a compute unit, which only wait.
    CHECK(result.xcds[i].end_clk == Approx(188 + 664.0 * double(i + 1)).epsilon(0.02));
    mean += result.xcds[i].end_clk / 8;
  }
  CHECK(double(result.device_clk) == Approx(result.xcds[7].end_clk).margin(1));
  CHECK(result.xcd_imbalance_percent() == Approx(100 * (result.xcds[7].end_clk / mean - 1)));
  CHECK(result.xcd_imbalance_percent() > 50);
}

TEST_CASE("a sampled workgroup has the company it would have", "[timing]") {
  const std::string source = repeat(200, "v_exp_f32_e32 v3, v2\n") + end_program; // the port is always busy
  const auto lengths = [&](uint32_t workgroups) {
    const TimingResult result = time_program(
        source, {.waves = 4, .workgroups = workgroups, .lds_bytes = 32768}, {}, {.workgroups = 3});
    REQUIRE(result.workgroups_per_cu == 2);
    std::vector<uint64_t> clk;
    for (const auto &time : result.simulated)
      clk.push_back(length(time));
    return clk;
  };
  for (const uint64_t clk : lengths(304 * 8)) // which runs on its own while the next one starts
    CHECK(double(clk + 188) == Approx(2 * 200 * 16).epsilon(0.02));
  for (const uint64_t clk : lengths(304)) // one for each compute unit
    CHECK(double(clk) == Approx(200 * 16).epsilon(0.02));
}

TEST_CASE("no place is empty until the last sample has ended", "[timing]") {
  const std::string source = repeat(100, "s_nop 15\n") + end_program;
  const TimingResult result =
      time_program(source, {.workgroups = 304 * 8, .lds_bytes = 32768}, {}, {.workgroups = 3});
  REQUIRE(result.simulated.size() == 3);
  // Two came before; another runs beside the last sample, until shortly before its own end.
  CHECK(result.wave_instructions > 5 * 101 + 90);
  CHECK(result.wave_instructions < 6 * 101);
}

TEST_CASE("a sample does not pay for the first touch of shared data", "[timing]") {
  // A quarter of a megabyte, line by line: 850 clk each the first time, 208 later.
  Memory memory;
  const std::array<uint64_t, 8> arguments{reinterpret_cast<uint64_t>(memory.allocate(1 << 18))};
  const std::string source =
      "s_load_dwordx2 s[8:9], s[0:1], 0x0\n v_mov_b32_e32 v1, 0\n s_movk_i32 s10, 0x800\n"
      "s_waitcnt lgkmcnt(0)\n loop:\n global_load_dword v4, v1, s[8:9]\n"
      "v_add_u32_e32 v1, 0x80, v1\n s_waitcnt vmcnt(0)\n"
      "s_sub_u32 s10, s10, 1\n s_cmp_lg_u32 s10, 0\n s_cbranch_scc1 loop\n s_endpgm\n";
  const TimedShape shape{.workgroups = 304 * 20, .lds_bytes = 65536};
  const TimingResult sample = time_program(source, shape, arguments, {.workgroups = 2}, memory);
  REQUIRE(sample.simulated.size() == 2);
  CHECK(double(length(sample.simulated[0])) == Approx(double(length(sample.simulated[1]))).epsilon(0.01));
  const TimingResult all = time_program(source, shape, arguments, {}, memory);
  CHECK(length(all.simulated[0]) > 3 * length(all.simulated[1]));
  CHECK(double(sample.device_clk) == Approx(double(all.device_clk)).epsilon(0.15));
}

TEST_CASE("compute units of a sample do not keep step", "[timing]") {
  const TimingResult result =
      time_program(repeat(100, "s_nop 15\n") + end_program, {.workgroups = 304 * 20, .lds_bytes = 65536}, {},
                   {.compute_units = 3, .workgroups = 1});
  REQUIRE(result.simulated.size() == 3);
  std::array<uint64_t, 3> start{};
  for (const auto &time : result.simulated)
    start[time.compute_unit] = time.start;
  for (size_t i : {1, 2})
    CHECK(double(start[i] - start[0]) == Approx(860.0 * double(i)).margin(6));
}

TEST_CASE("a launch of one round lasts as long as the youngest wave of a compute unit", "[timing]") {
  // Eight waves of each SIMD need the port all the time, and the oldest gets it: the first workgroup ends
  // after an eighth of the time that the last one needs.
  const std::string source = repeat(40, "v_exp_f32_e32 v3, v2\n") + end_program;
  const TimedShape shape{.waves = 4, .workgroups = 304 * 8};
  const TimingResult all = time_program(source, shape, {}, whole_device);
  for (const TimingOptions &options : {TimingOptions{}, TimingOptions{.compute_units = 2, .workgroups = 4}}) {
    const TimingResult some = time_program(source, shape, {}, options);
    CHECK(double(some.device_clk) == Approx(double(all.device_clk)).epsilon(0.02));
    CHECK(double(some.device_clk) > 8 * 40 * 16);
  }
}

TEST_CASE("all XCDs are simulated if the first is not representative", "[timing]") {
  const TimedShape shape{.workgroups = 608, .lds_bytes = 65536};
  const auto simulated = [&](const std::string &count) {
    return time_program(work(count), shape, {}, {.compute_units = 38}).simulated.size();
  };
  CHECK(simulated("s_mov_b32 s9, 12\n") == 76);
  CHECK(simulated("s_and_b32 s9, s2, 7\n s_add_u32 s9, s9, 1\n") == 608);
}

TEST_CASE("a whole XCD gives a free compute unit the next workgroup", "[timing]") {
  // Workgroup 0 takes as long as a hundred others.
  const std::string count = "s_movk_i32 s9, 100\n s_cmp_eq_u32 s2, 0\n s_cselect_b32 s9, s9, 1\n";
  const TimingResult result =
      time_program(work(count), {.workgroups = 608, .lds_bytes = 65536}, {}, whole_xcd);
  REQUIRE(result.simulated.size() == 76);
  CHECK(std::count_if(result.simulated.begin(), result.simulated.end(),
                      [](const auto &time) { return time.compute_unit == 0; }) == 1);
  CHECK(result.device_clk == 188 + length(result.simulated[0]));
}

} // namespace sluice::test
