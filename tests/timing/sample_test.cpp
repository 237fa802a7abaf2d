//===- sample_test.cpp - estimates from a sample of a launch, and their stated error --------------------===//
#include <catch2/catch.hpp>

#include "emulator/machine/program.h"
#include "emulator/timing/clock_curve.h"
#include "emulator/timing/long_loops.h"
#include "support/level.h"
#include "timing/timed_kernel.h"

namespace sluice::test {

namespace {

using emulator::timing::Level;

constexpr TimingOptions whole_device{.compute_units = 38, .xcds = 8};
constexpr TimingOptions usual_sample{.compute_units = 5, .workgroups = 8};
constexpr uint64_t bytes_each = 1 << 16;

/// Four waves of a workgroup read 64 KiB, beginning at the workgroup's number modulo `sources`.
std::string streams(uint32_t sources) {
  return "s_load_dwordx2 s[8:9], s[0:1], 0x0\n v_lshlrev_b32_e32 v0, 4, v0\n s_waitcnt lgkmcnt(0)\n"
         "s_and_b32 s10, s2, " +
         std::to_string(sources - 1) +
         "\n s_lshl_b32 s10, s10, 16\n s_add_u32 s8, s8, s10\n s_addc_u32 s9, s9, 0\n"
         "s_movk_i32 s11, 16\n again:\n global_load_dwordx4 v[4:7], v0, s[8:9]\n"
         "v_add_u32_e32 v0, 0x1000, v0\n s_sub_u32 s11, s11, 1\n s_cmp_lg_u32 s11, 0\n"
         "s_cbranch_scc1 again\n s_waitcnt vmcnt(0)\n s_endpgm\n";
}

/// The number of earlier workgroups decides what `body` does with s10.
std::string with_ticket(const std::string &body) {
  return "s_load_dwordx2 s[8:9], s[0:1], 0x0\n v_mov_b32_e32 v1, 0\n v_mov_b32_e32 v2, 1\n"
         "s_waitcnt lgkmcnt(0)\n s_movk_i32 s12, 5\n again:\n s_mov_b64 exec, 1\n"
         "global_atomic_add v3, v1, v2, s[8:9] sc0\n s_waitcnt vmcnt(0)\n s_mov_b64 exec, -1\n" +
         body;
}
const std::string work = repeat(10, "s_nop 15\n");
/// The persistent kernel: 3040 tiles for all.
const std::string takes_tiles = with_ticket("v_readfirstlane_b32 s10, v3\n s_cmpk_ge_u32 s10, 3040\n"
                                            "s_cbranch_scc1 end\n" +
                                            work + "s_branch again\n end:\n s_endpgm\n");

TimingResult time_with_counter(const std::string &source, const TimingOptions &options = {},
                               uint32_t workgroups = 304) {
  Memory memory;
  auto *const counter = static_cast<uint32_t *>(memory.allocate(256));
  *counter = 0;
  return time_program(source, {.workgroups = workgroups, .lds_bytes = 65536},
                      {reinterpret_cast<uint64_t>(counter)}, options, memory);
}

} // namespace

TEST_CASE("a sample of data that is read once reads it from HBM", "[timing]") {
  Memory memory;
  constexpr uint32_t workgroups = 4096;
  const std::array<uint64_t, 8> arguments{
      reinterpret_cast<uint64_t>(memory.allocate(workgroups * bytes_each))};
  // Two on a compute unit: 14 rounds, enough for a sample.
  const TimedShape shape{.waves = 4, .workgroups = workgroups, .lds_bytes = 32768};
  const TimingResult all = time_program(streams(workgroups), shape, arguments, whole_device, memory);
  REQUIRE(all.is_complete);
  CHECK(all.traffic.hbm_bytes >= workgroups * bytes_each);
  for (const TimingOptions &options : {usual_sample, TimingOptions{.workgroups = 4}, TimingOptions{}}) {
    const TimingResult result = time_program(streams(workgroups), shape, arguments, options, memory);
    CHECK(result.device_bytes[size_t(Level::hbm)] == Approx(double(all.traffic.hbm_bytes)).epsilon(0.01));
    CHECK(double(result.device_clk) == Approx(double(all.device_clk)).epsilon(0.05));
    CHECK(result.device_terabytes_per_second(Level::hbm) <= 4.14 * (1 + 1e-9));
  }
}

TEST_CASE("no level moves more than its limit over a launch", "[timing]") {
  Memory memory;
  const std::array<uint64_t, 8> arguments{reinterpret_cast<uint64_t>(memory.allocate(4096 * bytes_each))};
  const std::string stores =
      "s_load_dwordx2 s[8:9], s[0:1], 0x0\n v_lshlrev_b32_e32 v0, 4, v0\n s_waitcnt lgkmcnt(0)\n"
      "s_and_b32 s10, s2, 4095\n s_lshl_b32 s10, s10, 16\n s_add_u32 s8, s8, s10\n s_addc_u32 s9, s9, 0\n"
      "s_movk_i32 s11, 16\n again:\n global_store_dwordx4 v0, v[4:7], s[8:9]\n"
      "v_add_u32_e32 v0, 0x1000, v0\n s_sub_u32 s11, s11, 1\n s_cmp_lg_u32 s11, 0\n"
      "s_cbranch_scc1 again\n s_endpgm\n";
  const std::string lds = "v_lshlrev_b32_e32 v0, 4, v0\n" + repeat(200, "ds_read_b128 v[4:7], v0\n") +
                          "s_waitcnt lgkmcnt(0)\n s_endpgm\n";
  struct Case {
    const char *what;
    std::string source;
    uint32_t workgroups, lds_bytes;
  };
  // Memory of one workgroup, of a few, or of all: HBM, MALL, L2 and the vector cache are the limit in turn.
  const Case cases[] = {{"HBM", streams(4096), 4096, 0},
                        {"L2 and MALL", streams(256), 4096, 0},
                        {"vector cache", streams(1), 4096, 0},
                        {"few workgroups", streams(4096), 256, 0},
                        {"few places", streams(4096), 4096, 32768},
                        {"stores", stores, 4096, 0},
                        {"stores of one round", stores, 1216, 0},
                        {"LDS", lds, 2432, 16384}};
  for (const Case &c : cases) {
    std::vector<TimingOptions> samples = {usual_sample, {}, {.compute_units = 2, .workgroups = 3, .xcds = 2}};
    if (takes(size_t(&c - cases), 4)) {
      samples.push_back({.compute_units = 38, .xcds = 1});
      samples.push_back(whole_device);
    }
    for (const TimingOptions &options : samples) {
      const TimingResult result =
          time_program(c.source, {.waves = 4, .workgroups = c.workgroups, .lds_bytes = c.lds_bytes},
                       arguments, options, memory);
      for (size_t i = 0; i < emulator::timing::level_count; ++i) {
        CAPTURE(c.what, i, options.compute_units, options.workgroups);
        CHECK(result.device_level_percent(Level(i)) <= 100 + 1e-6);
        CHECK(result.bytes_per_clk(Level(i)) <= share(Level(i), result.device) * (1 + 1e-9));
      }
    }
  }
}

TEST_CASE("stores run ahead of memory by no more than L2 holds", "[timing]") {
  Memory memory;
  const std::array<uint64_t, 8> arguments{reinterpret_cast<uint64_t>(memory.allocate(uint64_t(1) << 26))};
  // One wave stores 64 MiB, line after line: a compute unit's share of HBM is 6.5 bytes a clk.
  const std::string source =
      "s_load_dwordx2 s[8:9], s[0:1], 0x0\n v_lshlrev_b32_e32 v0, 4, v0\n s_waitcnt lgkmcnt(0)\n"
      "s_mov_b32 s11, 0x1000\n again:\n" +
      repeat(4, "global_store_dwordx4 v0, v[4:7], s[8:9]\n v_add_u32_e32 v0, 0x400, v0\n") +
      "s_sub_u32 s11, s11, 1\n s_cmp_lg_u32 s11, 0\n s_cbranch_scc1 again\n s_waitcnt vmcnt(0)\n s_endpgm\n";
  const TimingResult result = time_program(source, {}, arguments, {}, memory);
  constexpr double bytes = 0x1000 * 4 * 1024.0, l2_share = 4194304 / 38.0;
  CHECK(double(result.device_clk) >= (bytes - 1.1 * l2_share) / share(Level::hbm, {}));
  CHECK(double(result.device_clk) <= bytes / share(Level::hbm, {}) + 2000);
}

TEST_CASE("loops that end by a counter in memory are refused by name", "[timing]") {
  using Catch::Contains;
  CHECK_THROWS_AS(time_with_counter(takes_tiles), emulator::timing::GlobalCounterError);
  CHECK_THROWS_WITH(time_with_counter(takes_tiles, usual_sample),
                    Contains("counter in memory") && Contains("(s_cbranch_scc1") &&
                        Contains("(global_atomic_add v3, v1, v2, s[8:9] sc0)") && Contains(" at 0x"));
  SECTION("unless all workgroups are simulated") {
    const TimingResult all = time_with_counter(takes_tiles, whole_device);
    CHECK(all.is_complete);
    // Ten tiles for each compute unit, of 640 clk and the way to the counter and back.
    CHECK(all.device_clk > 10 * 640);
    CHECK(all.device_clk < 15 * 1000);
  }
  SECTION("through LDS") {
    const std::string source =
        with_ticket("s_mov_b64 exec, 1\n v_mov_b32_e32 v5, 0x40\n ds_write_b32 v5, v3\n s_mov_b64 exec, -1\n"
                    "s_waitcnt lgkmcnt(0)\n v_mov_b32_e32 v6, 0x40\n ds_read_b32 v7, v6\n"
                    "s_waitcnt lgkmcnt(0)\n v_cmp_le_u32_e32 vcc, 0xbe0, v7\n s_cbranch_vccnz end\n" +
                    work + "s_branch again\n end:\n s_endpgm\n");
    CHECK_THROWS_WITH(time_with_counter(source), Contains("(s_cbranch_vccnz"));
  }
  SECTION("as the length of another loop") {
    const std::string source = with_ticket("v_readfirstlane_b32 s10, v3\n inner:\n" + work +
                                           "s_add_u32 s10, s10, 1\n s_cmpk_lt_u32 s10, 304\n"
                                           "s_cbranch_scc1 inner\n s_endpgm\n");
    CHECK_THROWS_WITH(time_with_counter(source), Contains("counter in memory"));
  }
}

TEST_CASE("a launch simulated as a whole may take its work from a counter", "[timing]") {
  // Every workgroup runs without an option: a single one, and one on each XCD.
  for (const uint32_t workgroups : {1u, 8u}) {
    CAPTURE(workgroups);
    const TimingResult result = time_with_counter(takes_tiles, {}, workgroups);
    CHECK(result.is_complete);
    CHECK(result.device_clk > 3040 / workgroups * 640);
  }
}

TEST_CASE("a counter that decides no loop does not stop the timing", "[timing]") {
  // The last workgroup to arrive merges the results of all, in a separate loop.
  const std::string last_merges = with_ticket(
      "v_readfirstlane_b32 s10, v3\n s_cmpk_lg_u32 s10, 303\n s_cbranch_scc1 end\n"
      "merge:\n" +
      work + "s_sub_u32 s12, s12, 1\n s_cmp_lg_u32 s12, 0\n s_cbranch_scc1 merge\n end:\n s_endpgm\n");
  CHECK_NOTHROW(time_with_counter(last_merges));
  // A register and a place of LDS that have been written since.
  const std::string forgotten = with_ticket(
      "v_mov_b32_e32 v5, 0x40\n ds_write_b32 v5, v3\n ds_write_b32 v5, v2\n ds_read_b32 v7, v5\n"
      "s_waitcnt lgkmcnt(0)\n v_readfirstlane_b32 s10, v3\n s_mov_b32 s10, s12\n"
      "v_cmp_eq_u32_e32 vcc, 0, v7\n loop:\n s_cbranch_vccnz end\n" +
      work + "s_sub_u32 s10, s10, 1\n s_cmp_lg_u32 s10, 0\n s_cbranch_scc1 loop\n end:\n s_endpgm\n");
  CHECK_NOTHROW(time_with_counter(forgotten));
  // An addition that retries until no other wave has interfered.
  CHECK_NOTHROW(time_with_counter(
      "s_load_dwordx2 s[8:9], s[0:1], 0x0\n v_mov_b32_e32 v1, 0\n v_mov_b32_e32 v5, 0\n"
      "s_waitcnt lgkmcnt(0)\n again:\n v_add_u32_e32 v4, 1, v5\n s_mov_b64 exec, 1\n"
      "global_atomic_cmpswap v3, v1, v[4:5], s[8:9] sc0\n s_waitcnt vmcnt(0)\n"
      "v_cmp_ne_u32_e32 vcc, v3, v5\n v_mov_b32_e32 v5, v3\n s_cbranch_vccnz again\n s_endpgm\n"));
}

TEST_CASE("a sample states its possible error", "[timing]") {
  // 1 to 64 times 640 clk, by a product of the number: coordinates do not predict it.
  const std::string source = "s_mul_i32 s9, s2, 40503\n s_lshr_b32 s9, s9, 7\n s_and_b32 s9, s9, 63\n "
                             "s_add_u32 s9, s9, 1\n loop:\n" +
                             work +
                             "s_sub_u32 s9, s9, 1\n s_cmp_lg_u32 s9, 0\n s_cbranch_scc1 loop\n s_endpgm\n";
  const TimedShape shape{.workgroups = 304 * 40, .lds_bytes = 65536};
  const TimingResult all = time_program(source, shape, {}, whole_device);
  CHECK(all.error_percent == 0.0);
  CHECK(all.warnings.empty());
  double before = 100;
  for (const uint32_t workgroups : {4u, 8u, 32u}) {
    const TimingResult result =
        time_program(source, shape, {}, {.compute_units = 4, .workgroups = workgroups});
    REQUIRE(result.error_percent);
    const double error = 100 * (double(result.device_clk) / double(all.device_clk) - 1);
    CAPTURE(workgroups, error, *result.error_percent);
    CHECK(std::abs(error) < 3 * *result.error_percent);
    CHECK(*result.error_percent < before);
    before = *result.error_percent;
    CHECK(result.warnings.size() == (*result.error_percent > 5 ? 1 : 0));
  }
  CHECK(before < 8);
  SECTION("a sample of a single workgroup says so") {
    const TimingResult one = time_program(source, shape, {}, {.workgroups = 1});
    CHECK(!one.error_percent);
    REQUIRE(one.warnings.size() == 1);
    CHECK(one.warnings[0] ==
          "the sample is too small: 1 of 12160 workgroups do not show how accurate the time is");
  }
  SECTION("and so does one of two parts") {
    const TimingResult two = time_program(source, shape, {}, {.workgroups = 2});
    REQUIRE(two.warnings.size() == 1);
    CHECK(two.warnings[0].find("the sample is too small: an error of") == 0);
  }
  SECTION("equal workgroups have zero error") {
    const TimingResult alike =
        time_program(work + "s_endpgm\n", shape, {}, {.compute_units = 2, .workgroups = 8});
    CHECK(*alike.error_percent < 1);
    CHECK(alike.warnings.empty());
  }
}

TEST_CASE("loops larger than the instruction cache are found by the part that ran", "[timing]") {
  // 100 instructions of 8 bytes and three of 4, beside 100 that are never reached.
  const std::string source =
      "s_mov_b32 s8, 2\n s_mov_b32 s9, 0\n again:\n" + repeat(100, "v_add_f32_e64 v1, v2, v2\n") +
      "s_cmp_lg_u32 s9, 0\n s_cbranch_scc0 usual\n" + repeat(100, "v_add_f32_e64 v1, v2, v2\n") +
      "usual:\n s_sub_u32 s8, s8, 1\n s_cmp_lg_u32 s8, 0\n s_cbranch_scc1 again\n s_endpgm\n";
  const emulator::Program program(code_object_of(source));
  const emulator::ProgramImpl &code = program.impl();
  const TimingResult result = time_program(source);
  CHECK(result.warnings.empty());
  const emulator::OpRange kernel = code.ops_of(*code.object.find_kernel("small"));
  constexpr uint64_t bytes = 100 * 8 + 5 * 4;
  CHECK(emulator::timing::loops_longer_than(code, kernel, result, bytes).empty());
  const auto loops = emulator::timing::loops_longer_than(code, kernel, result, bytes - 1);
  REQUIRE(loops.size() == 1);
  CHECK(loops[0].bytes == bytes);
  CHECK(code.address_of(loops[0].header) == program.kernel("small")->entry + 8);
}

TEST_CASE("a busier chip keeps a lower clock", "[timing]") {
  using emulator::timing::published_clock_mhz;
  CHECK(published_clock_mhz(0) == 2100);
  CHECK(published_clock_mhz(34) == 1740);
  CHECK(published_clock_mhz(42.3) == Approx(1360));
  CHECK(published_clock_mhz(72.1) == Approx(1120));
  CHECK(published_clock_mhz(17) == Approx((2100 + 1740) / 2.0));
  CHECK(published_clock_mhz(100) == 1115);
  for (int percent = 1; percent <= 100; ++percent)
    CHECK(published_clock_mhz(percent) <= published_clock_mhz(percent - 1));
}

TEST_CASE("a launch is timed at the clock that belongs to it", "[timing]") {
  using emulator::timing::published_clock_mhz;
  Memory memory;
  auto *const data = static_cast<uint32_t *>(memory.allocate(256));
  *data = 7;
  const auto timed = [&](const std::string &source) {
    return emulator::timing::time_at_published_clock(memory, [&](uint32_t mhz) {
      CHECK(*data == 7); // the output of a pass is not visible to the next
      return time_program(source, {.waves = 4, .workgroups = 304}, {reinterpret_cast<uint64_t>(data)},
                          {.device = {.clock_mhz = mhz}}, memory);
    });
  };
  const std::string store =
      "s_load_dwordx2 s[8:9], s[0:1], 0x0\n v_mov_b32_e32 v0, 0\n s_waitcnt lgkmcnt(0)\n"
      "global_store_dword v0, v0, s[8:9]\n s_waitcnt vmcnt(0)\n s_endpgm\n";
  const std::string mfma = "v_mfma_f32_16x16x16_f16 v[4:7], v[8:9], v[10:11], v[4:7]\n";
  const TimingResult idle = timed(store),
                     busy = timed("s_movk_i32 s10, 300\n again:\n" + repeat(20, mfma) +
                                  "s_sub_u32 s10, s10, 1\n s_cmp_lg_u32 s10, 0\n s_cbranch_scc1 again\n" +
                                  store);
  CHECK(*data == 7);
  CHECK(idle.warnings.empty());
  CHECK(busy.warnings.empty());
  CHECK(idle.device.clock_mhz == 2100);
  CHECK(busy.device_mfma_percent() > 90);
  CHECK(busy.device.clock_mhz == Approx(published_clock_mhz(busy.device_mfma_percent())).epsilon(0.01));
  CHECK(busy.microseconds() == Approx(double(busy.device_clk) / busy.device.clock_mhz));
}

TEST_CASE("a launch without a matching clock carries a warning", "[timing]") {
  using emulator::timing::most_clock_passes;
  Memory memory;
  uint32_t passes = 0;
  const TimingResult result = emulator::timing::time_at_published_clock(memory, [&](uint32_t mhz) {
    ++passes;
    // Idle at a low clock, busy at a high one: no pass agrees with the previous one.
    TimingResult pass;
    pass.device.clock_mhz = mhz;
    pass.device_clk = 1000;
    if (mhz > 1500) pass.device_matrix_clk = 1000.0 * 4 * pass.device.compute_units;
    return pass;
  });
  CHECK(passes == most_clock_passes);
  CHECK(result.device.clock_mhz == 1115);
  REQUIRE(result.warnings.size() == 1);
  CHECK(result.warnings[0] == "4 passes found no clock for the launch: at 1115 MHz it keeps the matrix "
                              "cores so busy that the chip's clock would be 2100 MHz");
}

} // namespace sluice::test
