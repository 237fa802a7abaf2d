//===- levels_test.cpp - times that follow the engine's clock, and times that do not --------------------===//
#include <catch2/catch.hpp>

#include "timing/timed_kernel.h"

namespace sluice::test {

using emulator::timing::Device;
using emulator::timing::Level;

namespace {

double terabytes(Level level, const Device &device) {
  return terabytes_per_second(share(level, device), device);
}

const std::string load_and_wait =
    "s_load_dwordx2 s[8:9], s[0:1], 0x0\n v_mov_b32_e32 v2, 0\n s_waitcnt lgkmcnt(0)\n"
    "s_memtime s[10:11]\n global_load_dword v1, v2, s[8:9]\n s_waitcnt vmcnt(0)\n"
    "s_memtime s[12:13]\n s_waitcnt lgkmcnt(0)\n s_sub_u32 s10, s12, s10\n"
    "v_mov_b32_e32 v3, s10\n global_store_dword v2, v3, s[8:9] offset:8\n s_endpgm\n";

/// The latency of a load from HBM as the kernel sees it.
uint32_t load_clk(const Device &device) {
  Memory memory;
  auto *data = static_cast<uint32_t *>(memory.allocate(4096));
  time_program(load_and_wait, {}, {reinterpret_cast<uint64_t>(data)}, {.device = device}, memory);
  return data[2];
}

} // namespace

TEST_CASE("bandwidths up to L2 follow the clock, and those beyond do not", "[timing]") {
  const Device full, slow{.clock_mhz = 1200};
  CHECK(terabytes(Level::hbm, full) == Approx(4.14));
  CHECK(terabytes(Level::hbm, slow) == Approx(4.14));
  CHECK(terabytes(Level::mall, slow) == Approx(17.2));
  CHECK(terabytes(Level::l2, full) == Approx(28));
  CHECK(terabytes(Level::l2, slow) == Approx(16));
  CHECK(terabytes(Level::vector_cache, slow) == Approx(64 * 304 * 1.2e-3));
  CHECK(terabytes(Level::lds, full) == Approx(128 * 304 * 2.1e-3));
}

TEST_CASE("fewer compute units have larger shares of shared bandwidth", "[timing]") {
  const Device half{.compute_units = 152};
  CHECK(share(Level::hbm, half) == Approx(2 * share(Level::hbm, {})));
  CHECK(share(Level::l2, half) == Approx(2 * share(Level::l2, {})));
  CHECK(share(Level::vector_cache, half) == share(Level::vector_cache, {}));
  CHECK(terabytes(Level::lds, half) == Approx(terabytes(Level::lds, {}) / 2));
}

TEST_CASE("the part of a latency beyond L2 takes the same time at each clock", "[timing]") {
  CHECK(latency_clk(Level::hbm, {}) == 860);
  // 208 clk to L2 and back, and 652 at 2100 MHz.
  CHECK(latency_clk(Level::hbm, {.clock_mhz = 1050}) == 208 + 326);
  CHECK(latency_clk(Level::mall, {.clock_mhz = 4200}) == 208 + 2 * 259);
  CHECK(latency_clk(Level::l2, {.clock_mhz = 1050}) == 208);
  // From 860 to 534, of which a wave sees whole turns.
  CHECK(load_clk({}) - load_clk({.clock_mhz = 1050}) == 324);
}

TEST_CASE("a compute unit may run ahead of its share for the same time", "[timing]") {
  CHECK(burst_clk_of(Level::hbm, {.clock_mhz = 1050}) == 215);
  CHECK(burst_clk_of(Level::mall, {}) == 430);
  CHECK(burst_clk_of(Level::l2, {.clock_mhz = 1050}) == 430);
}

TEST_CASE("a kernel that reads HBM takes as long at a lower clock", "[timing]") {
  // 512 threads read 1 MiB per workgroup: at either clock the bandwidth is the limit.
  Memory memory;
  constexpr uint64_t bytes = 1 << 20;
  auto *data = static_cast<std::byte *>(memory.allocate(16 * bytes)); // no two simulated ones share one
  const std::string source =
      "s_load_dwordx2 s[8:9], s[0:1], 0x0\n v_lshlrev_b32_e32 v0, 4, v0\n s_waitcnt lgkmcnt(0)\n"
      "s_and_b32 s10, s2, 15\n s_lshl_b32 s10, s10, 20\n s_add_u32 s8, s8, s10\n s_addc_u32 s9, s9, 0\n "
      "s_movk_i32 s11, 128\n again:\n"
      "global_load_dwordx4 v[4:7], v0, s[8:9]\n v_add_u32_e32 v0, 0x2000, v0\n s_sub_u32 s11, s11, 1\n"
      "s_cmp_lg_u32 s11, 0\n s_cbranch_scc1 again\n s_waitcnt vmcnt(0)\n s_endpgm\n";
  auto time = [&](uint32_t clock) {
    return time_program(source, {.waves = 8, .workgroups = 304}, {reinterpret_cast<uint64_t>(data)},
                        {.device = {.clock_mhz = clock}}, memory);
  };
  const TimingResult fast = time(2100), slow = time(1200);
  CHECK(slow.microseconds() == Approx(fast.microseconds()).epsilon(0.03));
  CHECK(double(slow.device_clk) == Approx(double(fast.device_clk) * 1200 / 2100).epsilon(0.03));
}

TEST_CASE("a launch is distributed to the existing compute units", "[timing]") {
  const std::string source = repeat(100, "s_nop 15\n") + end_program;
  const TimedShape shape{.waves = 16, .workgroups = 304 * 2 * 10};
  const TimingResult full = time_program(source, shape);
  const TimingResult half = time_program(source, shape, {}, {.device = {.compute_units = 152}});
  CHECK(half.device_clk == 2 * full.device_clk);
  CHECK(half.simulated.size() == 2 * full.simulated.size());
  const TimingResult slow = time_program(source, shape, {}, {.device = {.clock_mhz = 1050}});
  CHECK(slow.device_clk == full.device_clk);
  CHECK(slow.microseconds() == Approx(2 * full.microseconds()));
}

TEST_CASE("the bytes that lanes move in LDS are counted", "[timing]") {
  auto lds_bytes = [](const std::string &source) {
    return time_program(source + end_program, {.lds_bytes = 4096}).traffic.lds_bytes;
  };
  const std::string place = "v_lshlrev_b32_e32 v0, 4, v0\n";
  CHECK(lds_bytes(place) == 0);
  CHECK(lds_bytes(place + "ds_read_b128 v[4:7], v0\n") == 64 * 16);
  CHECK(lds_bytes(place + "ds_write2_b32 v0, v1, v2 offset1:1\n") == 64 * 8);
  CHECK(lds_bytes(place + "s_mov_b64 exec, 7\n ds_write_b8 v0, v1\n") == 3);
  CHECK(lds_bytes(place + "s_mov_b64 exec, 7\n ds_bpermute_b32 v1, v0, v2\n") == 3 * 4);
}

TEST_CASE("an impossible device is refused", "[timing]") {
  auto time = [](const Device &device, uint32_t simulated = 1) {
    time_program(end_program, {}, {}, {.compute_units = simulated, .device = device});
  };
  using Catch::Contains;
  CHECK_THROWS_WITH(time({.clock_mhz = 0}), Contains("the clock is 0 MHz"));
  for (uint32_t units : {0u, 12u, 312u})
    CHECK_THROWS_WITH(time({.compute_units = units}),
                      Contains("the device has " + std::to_string(units)) && Contains("multiple of 8"));
  CHECK_THROWS_WITH(time({.compute_units = 16}, 3), Contains("3 compute units") && Contains("one to 2"));
  CHECK_NOTHROW(time({.compute_units = 16}, 2));
}

} // namespace sluice::test
