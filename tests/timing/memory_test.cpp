//===- memory_test.cpp - LDS, caches and counters -------------------------------------------------------===//
#include <catch2/catch.hpp>

#include "emulator/timing/memory_levels.h"
#include "timing/timed_kernel.h"

namespace sluice::test {

namespace {

using emulator::timing::Pipe;
using emulator::timing::Stall;

constexpr uint32_t words = 1 << 20;

struct Buffer {
  Memory memory;
  uint32_t *data = static_cast<uint32_t *>(memory.allocate(words * 4));

  TimingResult time(const std::string &body, const TimedShape &shape = {},
                    const TimingOptions &options = {}) {
    const std::string source =
        "s_load_dwordx2 s[8:9], s[0:1], 0x0\n v_lshlrev_b32_e32 v1, 2, v0\n"
        "v_mov_b32_e32 v2, 0\n v_lshlrev_b32_e32 v3, 4, v0\n v_lshlrev_b32_e32 v4, 7, v0\n"
        "s_waitcnt lgkmcnt(0)\n" +
        aligned + body + end_program;
    return time_program(source, shape, {reinterpret_cast<uint64_t>(data)}, options, memory);
  }
  /// Clk that `body` adds to a program without it.
  uint64_t clk(const std::string &body) { return time(body).simulated_clk - time("").simulated_clk; }
};

const std::string wait = "s_waitcnt vmcnt(0)\n";
const TimedShape with_lds{.lds_bytes = 65536};

std::string lds_addresses(uint32_t dwords) {
  return "v_mul_u32_u24_e32 v1, " + std::to_string(4 * dwords) + ", v0\n" + aligned;
}

} // namespace

TEST_CASE("an LDS read takes its port, and its bytes come later", "[timing]") {
  const auto each = [](uint32_t stride, const std::string &read) {
    return clk_each(lds_addresses(stride), read, end_program, with_lds);
  };
  CHECK(each(1, "ds_read_b32 v2, v1\n") == 4);
  CHECK(each(2, "ds_read_b64 v[2:3], v1\n") == 8);
  CHECK(each(4, "ds_read_b128 v[4:7], v1\n") == 16);
  CHECK(each(1, "ds_read2_b32 v[2:3], v1 offset1:64\n") == 8);
  CHECK(each(1, "ds_swizzle_b32 v2, v1 offset:0x1f\n") == 4);
  CHECK(each(1, "ds_write_b32 v1, v2\n") == 8);
  CHECK(each(4, "ds_write_b128 v1, v[4:7]\n") == 28);
  CHECK(each(1, "ds_read_b32 v2, v1\n s_waitcnt lgkmcnt(0)\n") == 52);
  CHECK(each(4, "ds_read_b128 v[4:7], v1\n s_waitcnt lgkmcnt(0)\n") == 64);
  SECTION("lanes on one bank come one after another") {
    CHECK(each(2, "ds_read_b32 v2, v1\n") == 4);
    CHECK(each(4, "ds_read_b32 v2, v1\n") == 8);
    CHECK(each(32, "ds_read_b32 v2, v1\n") == 64);
  }
}

TEST_CASE("two SIMDs share an LDS port, and the ports share the banks", "[timing]") {
  const std::string read = "ds_read_b128 v[4:7], v1\n";
  const std::string setup = "v_and_b32_e32 v1, 63, v0\n v_lshlrev_b32_e32 v1, 4, v1\n" + aligned;
  const auto each = [&](uint32_t waves, const std::string &start, const std::string &body) {
    return clk_each(start, body, end_program, {.waves = waves, .lds_bytes = 65536});
  };
  CHECK(each(1, setup, read) == 16);
  CHECK(each(4, setup, read) == 32);
  // Only waves 0 and 2, on SIMDs of different ports.
  const std::string even =
      "v_readfirstlane_b32 s8, v0\n s_bitcmp1_b32 s8, 6\n s_cbranch_scc0 go\n s_endpgm\n go:\n";
  CHECK(each(4, even + setup, read) == 16);
  const std::string conflicts = "v_and_b32_e32 v1, 63, v0\n v_lshlrev_b32_e32 v1, 7, v1\n" + aligned;
  CHECK(each(4, even + conflicts, "ds_read_b32 v2, v1\n") == 128);
}

TEST_CASE("LDS queues limited work, and lgkmcnt limited instructions", "[timing]") {
  const TimingResult result =
      time_program(lds_addresses(32) + repeat(8, "ds_read_b32 v2, v1\n") + end_program, with_lds);
  // Each takes 64 clk; the second issues at once, and the others when the one before the last gets its turn.
  CHECK(result.stall_clk[size_t(Stall::queue)] > 5 * 60);
  CHECK(result.busy_clk[size_t(Pipe::lds)] == 8 * 64);
}

TEST_CASE("vector memory queues limited work, and counters limited instructions", "[timing]") {
  Buffer buffer;
  const auto queued = [&](uint32_t times, const std::string &load) {
    return buffer.time(repeat(times, load)).stall_clk[size_t(Stall::queue)];
  };
  // 64 clk of the path each.
  CHECK(queued(2, "global_load_dword v5, v4, s[8:9]\n") == 0);
  CHECK(queued(8, "global_load_dword v5, v4, s[8:9]\n") >= 5 * 60);
  // One line, which arrives after 860 clk.
  CHECK(queued(63, "global_load_dword v5, v2, s[8:9]\n") == 0);
  CHECK(queued(64, "global_load_dword v5, v2, s[8:9]\n") >= 860 - 64 * 4);
  CHECK(queued(15, "s_load_dword s12, s[8:9], 0x0\n") == 0);
  CHECK(queued(16, "s_load_dword s12, s[8:9], 0x0\n") >= 860 - 16 * 4);
}

TEST_CASE("scalar loads have a separate cache", "[timing]") {
  Buffer buffer;
  const std::string scalar_wait = "s_waitcnt lgkmcnt(0)\n";
  CHECK(buffer.clk("s_load_dword s12, s[0:1], 0x0\n" + scalar_wait) == 64); // the arguments were read before
  CHECK(buffer.clk("s_load_dword s12, s[8:9], 0x0\n" + scalar_wait) == 860);
}

TEST_CASE("the least recently used line of a set leaves the vector cache", "[timing]") {
  Buffer buffer;
  const auto touch = [](uint32_t line) { // all in one set of four
    return "v_mov_b32_e32 v6, " + std::to_string(line * 8192) + "\n global_load_dword v5, v6, s[8:9]\n" +
           wait;
  };
  std::string all;
  for (uint32_t line : {0, 1, 2, 3, 0, 4})
    all += touch(line);
  const uint64_t before = buffer.clk(all);
  // A move, which may be in two fetches, and the load.
  CHECK(double(buffer.clk(all + touch(0)) - before) == Approx(116 + 4).margin(4));
  CHECK(double(buffer.clk(all + touch(1)) - before) == Approx(208 + 4).margin(4));
}

TEST_CASE("a compute unit that was quiet may run ahead of its share", "[timing]") {
  Buffer buffer;
  const double line_clk = 128 / (4.14e12 / 2.1e9 / 304);
  CHECK(double(buffer.clk("global_load_dword v5, v4, s[8:9]\n" + wait)) ==
        Approx(63 * line_clk - 430 + 860).margin(25));
}

TEST_CASE("a share is never exceeded from the launch's start on", "[timing]") {
  using emulator::timing::Queue;
  // Idle time before the launch gives no credit; idle time within it does.
  for (const double start : {0.0, 100.0, 430.0, 5000.0}) {
    Queue queue(2, 430);
    double asked = 0;
    for (double clk = start; clk < start + 600; clk += 10) {
      queue.serve(clk, 100);
      asked += 100;
      CAPTURE(start, clk);
      CHECK(asked - queue.waiting_bytes(clk) <= 2 * clk + 1e-9);
      CHECK(asked - queue.waiting_bytes(clk) <= 2 * (clk - start + 430) + 1e-9);
    }
  }
  Queue queue(2, 430);
  CHECK(queue.serve(5000, 860) == 5000);
  CHECK(queue.serve(5000, 100) == 5000);
  CHECK(queue.serve(5000, 100) == 5050);
}

TEST_CASE("loads arrive after the latency of the level that has the data", "[timing]") {
  Buffer buffer;
  const std::string load = "global_load_dword v5, v2, s[8:9]\n";
  CHECK(buffer.clk(load + wait) == 860);
  CHECK(buffer.clk(load + wait + load + wait) == 860 + 116);
  SECTION("a line that is on its way is waited for") {
    CHECK(buffer.clk(load + load + wait) == 860);
  }
  SECTION("one line later is another") {
    CHECK(buffer.clk(load + wait + "global_load_dword v5, v2, s[8:9] offset:128\n" + wait) == 2 * 860);
  }
  SECTION("buffer_inv empties the vector cache, not L2") {
    const uint64_t clk = buffer.clk(load + wait + "buffer_inv sc1\n" + load + wait);
    CHECK(clk >= 860 + 208);
    CHECK(clk <= 860 + 208 + 8);
  }
  SECTION("stores are done in L2, and leave nothing in the vector cache") {
    const std::string store = "global_store_dword v2, v5, s[8:9]\n";
    CHECK(buffer.clk(store + wait) == 208);
    CHECK(buffer.clk(store + wait + load + wait) == 208 + 208);
  }
}

TEST_CASE("s_waitcnt waits for its count", "[timing]") {
  Buffer buffer;
  const std::string near = "global_load_dword v5, v2, s[8:9]\n";
  const std::string far = "global_load_dword v6, v2, s[8:9] offset:256\n";
  const uint64_t warm = buffer.clk(near + wait);
  // Issued a turn apart: hit at 116, miss at 4 + 860.
  CHECK(buffer.clk(near + wait + near + far + "s_waitcnt vmcnt(1)\n") == warm + 116);
  CHECK(buffer.clk(near + wait + near + far + wait) == warm + 4 + 860);
  // vmcnt counts in order: the hit after the miss does not help.
  CHECK(buffer.clk(near + wait + far + near + "s_waitcnt vmcnt(1)\n") == warm + 860);
  const TimingResult result = buffer.time(near + wait);
  CHECK(result.stall_clk[size_t(Stall::vmcnt)] == 860 - 8);
}

TEST_CASE("a pass over the path takes a clk for 64 bytes of a line", "[timing]") {
  Buffer buffer;
  const auto busy = [&](const std::string &body) {
    const TimingResult result = buffer.time(body);
    return result.busy_clk[size_t(Pipe::vmem)];
  };
  CHECK(busy("global_load_dword v5, v1, s[8:9]\n") == 4);
  CHECK(busy("global_load_dwordx4 v[8:11], v3, s[8:9]\n") == 16);
  CHECK(busy("global_load_dword v5, v4, s[8:9]\n") == 64);
  CHECK(busy("s_mov_b32 m0, 0\n s_nop 0\n global_load_lds_dword v1, s[8:9]\n") == 11);
  SECTION("only lanes that EXEC enables") {
    CHECK(busy("s_mov_b64 exec, 0xff\n global_load_dword v5, v4, s[8:9]\n") == 8);
  }
  SECTION("buffers and scratch have addresses, too") {
    const std::string resource = "s_mov_b32 s10, 0x100000\n s_mov_b32 s11, 0x27000\n";
    CHECK(busy(resource + "buffer_load_dwordx4 v[8:11], v3, s[8:11], 0 offen\n") == 16);
    CHECK(busy(resource + "buffer_load_dword v5, v4, s[8:11], 0 offen\n") == 64);
    CHECK(
        busy("s_mov_b32 s10, 1024\n s_mov_b32 s11, 0x27000\n buffer_load_dword v5, v4, s[8:11], 0 offen\n") ==
        8);
  }
}

TEST_CASE("a compute unit gets its share of HBM", "[timing]") {
  Buffer buffer;
  // 64 lines each time, none seen before.
  const auto stream = [&](uint32_t loads) {
    std::string body;
    for (uint32_t i = 0; i < loads; ++i)
      body += "global_load_dword v5, v4, s[8:9]\n v_add_u32_e32 v4, 0x2000, v4\n";
    return buffer.time(body + wait).simulated_clk;
  };
  const double clk = double(stream(40) - stream(20)) / 20;
  CHECK(clk == Approx(64 * 128 / (4.14e12 / 2.1e9 / 304)).epsilon(0.01));
  const TimingResult result = buffer.time("global_load_dword v5, v4, s[8:9]\n" + wait);
  CHECK(result.traffic.hbm_bytes == 65 * 128); // and the arguments
  CHECK(result.traffic.l1_bytes == 256);
}

TEST_CASE("simulated compute units share L2", "[timing]") {
  Buffer buffer;
  const std::string load = "global_load_dword v5, v4, s[8:9]\n" + wait;
  const TimedShape shape{.workgroups = 16};
  const TimingResult one = buffer.time(load, shape, {.compute_units = 1, .xcds = 1});
  const TimingResult two = buffer.time(load, shape, {.compute_units = 2, .xcds = 1});
  CHECK(one.simulated.size() == 1);
  CHECK(two.simulated.size() == 2);
  CHECK(two.traffic.hbm_bytes == one.traffic.hbm_bytes);
  CHECK(two.traffic.l2_bytes > one.traffic.l2_bytes);
}

TEST_CASE("arguments begin a cache line, wherever the host's heap has room", "[timing]") {
  const std::string source = "s_and_b32 s4, s0, " + std::to_string(emulator::timing::cache_line_bytes - 1) +
                             "\n s_cmp_eq_u32 s4, 0\n s_cbranch_scc1 end\n s_sleep 100\n end:\n" +
                             end_program;
  std::vector<std::vector<std::byte>> taken;
  for (size_t i = 1; i <= 16; ++i) {
    taken.emplace_back(64 * (2 * i + 1));
    CHECK(clk_of(source) < 100);
  }
}

} // namespace sluice::test
