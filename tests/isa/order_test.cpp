//===- order_test.cpp - the order of accesses of different workgroups -----------------------------------===//
//
// The rules of AMDGPUUsage, "Memory Model gfx942", on simulated waves: an access is visible to another
// workgroup if it is done, written back, released, acquired, and the reader has invalidated its caches.
//
//===----------------------------------------------------------------------------------------------------===//
#include <catch2/catch.hpp>

#include "emulator/check/global_shadow.h"
#include "isa/kernel_fixture.h"

namespace sluice::test {

namespace {

using emulator::AccessOrder;
using emulator::Footprint;
using emulator::GlobalShadow;
using emulator::LinePart;
using emulator::ReleasedAtomics;
using emulator::WaveOrder;

constexpr uint64_t data = 0x10000;
constexpr uint64_t flag = 0x20000;
constexpr uint64_t second_flag = 0x20040;

LinePart place_of(uint64_t address) {
  return Footprint(&address, 1, 4).parts()[0];
}

/// A wave of a workgroup of two waves, with memory instructions that are done as soon as they are waited for.
struct TestWaveOrder {
  WaveOrder order;
  GlobalShadow::Pages pages;
  uint32_t waited = 0;
  uint32_t scalar_waited = 0;

  TestWaveOrder(uint32_t workgroup, uint32_t wave) { order.start(2 * workgroup, wave, 2); }

  void wait() { waited = order.now(); }
  AccessOrder access(GlobalShadow &shadow, uint64_t address, bool store, bool past_caches = false) {
    const AccessOrder seen = shadow
                                 .enter(pages, order, order.now() + 1, Footprint(&address, 1, 4),
                                        {!store, store, past_caches, false, 7})
                                 .order;
    order.advance();
    return seen;
  }
  void write_back() {
    order.set_done(waited, scalar_waited);
    order.write_back();
    order.advance();
  }
  void release(ReleasedAtomics &atomics, uint64_t address = flag) {
    order.set_done(waited, scalar_waited);
    const LinePart place = place_of(address);
    order.release(atomics, {&place, 1});
    order.advance();
  }
  void acquire(ReleasedAtomics &atomics, uint64_t address = flag) {
    order.acquire(atomics, place_of(address));
  }
};

void meet(TestWaveOrder &a, TestWaveOrder &b) {
  a.order.set_done(a.waited, a.scalar_waited);
  b.order.set_done(b.waited, b.scalar_waited);
  WaveOrder *const waves[] = {&a.order, &b.order};
  WaveOrder::meet(waves);
}

struct Device {
  GlobalShadow shadow;
  ReleasedAtomics atomics;
  TestWaveOrder writer{0, 0};
  TestWaveOrder writers_neighbour{0, 1};
  TestWaveOrder reader{1, 0};
  TestWaveOrder readers_neighbour{1, 1};
  TestWaveOrder third{2, 0};
};

} // namespace

TEST_CASE("a store is seen after all five steps, and after no four of them", "[isa][order]") {
  enum Step { wait, write_back, release, acquire, invalidate, none };
  auto seen_without = [](Step missing) {
    Device d;
    CHECK(d.writer.access(d.shadow, data, true) == AccessOrder::before);
    if (missing != write_back) d.writer.write_back();
    if (missing != wait) d.writer.wait();
    if (missing != release) d.writer.release(d.atomics);
    if (missing != acquire) d.reader.acquire(d.atomics);
    if (missing != invalidate) d.reader.order.invalidate();
    return d.reader.access(d.shadow, data, false);
  };
  CHECK(seen_without(none) == AccessOrder::before);
  CHECK(seen_without(wait) == AccessOrder::none);
  CHECK(seen_without(write_back) == AccessOrder::not_written_back);
  CHECK(seen_without(release) == AccessOrder::none);
  CHECK(seen_without(acquire) == AccessOrder::none);
  CHECK(seen_without(invalidate) == AccessOrder::not_invalidated);
}

TEST_CASE("a write-back that is not waited for has not happened", "[isa][order]") {
  Device d;
  d.writer.access(d.shadow, data, true);
  d.writer.wait();
  d.writer.write_back();
  d.writer.release(d.atomics);
  d.reader.acquire(d.atomics);
  d.reader.order.invalidate();
  CHECK(d.reader.access(d.shadow, data, false) == AccessOrder::not_written_back);
}

TEST_CASE("a write-back that is not waited for has not written back other waves' stores", "[isa][order]") {
  for (bool waits : {true, false}) {
    Device d;
    d.writers_neighbour.access(d.shadow, data, true);
    d.writers_neighbour.wait();
    meet(d.writer, d.writers_neighbour);
    d.writer.write_back();
    if (waits) d.writer.wait();
    d.writer.release(d.atomics);
    d.reader.acquire(d.atomics);
    d.reader.order.invalidate();
    CHECK(d.reader.access(d.shadow, data, false) ==
          (waits ? AccessOrder::before : AccessOrder::not_written_back));
  }
}

TEST_CASE("a release does not order later accesses", "[isa][order]") {
  Device d;
  d.writer.write_back();
  d.writer.wait();
  d.writer.release(d.atomics);
  d.writer.access(d.shadow, data, true);
  d.writer.wait();
  d.reader.acquire(d.atomics);
  d.reader.order.invalidate();
  CHECK(d.reader.access(d.shadow, data, false) == AccessOrder::none);
}

TEST_CASE("an acquire elsewhere orders nothing", "[isa][order]") {
  Device d;
  d.writer.access(d.shadow, data, true);
  d.writer.write_back();
  d.writer.wait();
  d.writer.release(d.atomics);
  d.reader.acquire(d.atomics, second_flag);
  d.reader.order.invalidate();
  CHECK(d.reader.access(d.shadow, data, false) == AccessOrder::none);
}

TEST_CASE("accesses with sc1 go past the caches", "[isa][order]") {
  Device d;
  d.writer.access(d.shadow, data, true, true);
  d.writer.wait();
  d.writer.release(d.atomics);
  d.reader.acquire(d.atomics);
  // The store needs no write-back, and a load with sc1 no invalidation; another load does.
  CHECK(d.reader.access(d.shadow, data, false, true) == AccessOrder::before);
  CHECK(d.reader.access(d.shadow, data, false) == AccessOrder::not_invalidated);
  // Two of them may meet in any order.
  CHECK(d.third.access(d.shadow, data, true, true) == AccessOrder::none); // the plain load above
  CHECK(d.writer.access(d.shadow, data + 4, true, true) == AccessOrder::before);
  CHECK(d.third.access(d.shadow, data + 4, true, true) == AccessOrder::before);
}

TEST_CASE("a store after another workgroup's load needs an order, but no caches", "[isa][order]") {
  for (bool ordered : {false, true}) {
    Device d;
    d.reader.access(d.shadow, data, false);
    d.reader.wait();
    if (ordered) {
      d.reader.release(d.atomics);
      d.writer.acquire(d.atomics);
    }
    CHECK(d.writer.access(d.shadow, data, true) == (ordered ? AccessOrder::before : AccessOrder::none));
  }
}

TEST_CASE("scalar loads are waited for on their own", "[isa][order]") {
  for (bool waited : {false, true}) {
    Device d;
    const uint64_t address = data;
    // A vector load in flight, and none at all: neither is what the release waits for.
    d.reader.access(d.shadow, data + 64, false);
    d.shadow.enter(d.reader.pages, d.reader.order, d.reader.order.scalar_now() + 1, Footprint(&address, 1, 4),
                   {true, false, false, true, 7});
    d.reader.order.advance_scalar();
    if (waited) d.reader.scalar_waited = d.reader.order.scalar_now();
    d.reader.release(d.atomics);
    d.writer.acquire(d.atomics);
    CHECK(d.writer.access(d.shadow, data, true) == (waited ? AccessOrder::before : AccessOrder::none));
    CHECK(d.writer.access(d.shadow, data + 64, true) == AccessOrder::none);
  }
}

TEST_CASE("the last workgroup may overwrite data that all have loaded into scalars", "[isa][order]") {
  for (bool waited : {true, false}) {
    const TestKernel kernel(
        std::string("s_load_dwordx4 s[8:11], s[0:1], 0x0\n v_mov_b32 v2, 0\n v_mov_b32 v3, 1\n"
                    "s_mov_b64 exec, 1\n s_waitcnt lgkmcnt(0)\n s_load_dword s12, s[8:9], 0x0\n") +
        (waited ? "s_waitcnt lgkmcnt(0)\n" : "") +
        "global_atomic_add v5, v2, v3, s[10:11] sc0\n s_waitcnt vmcnt(0) lgkmcnt(0)\n"
        "v_readfirstlane_b32 s17, v5\n s_nop 4\n s_cmp_lg_u32 s17, 3\n s_cbranch_scc1 done\n"
        "global_store_dword v2, v3, s[8:9]\n done: s_endpgm\n");
    Memory memory;
    auto *parameter = static_cast<uint32_t *>(memory.allocate(4096));
    auto *counter = static_cast<uint32_t *>(memory.allocate(4096));
    counter[0] = 0;
    const LaunchResult result =
        kernel.run(memory, {reinterpret_cast<uint64_t>(parameter), reinterpret_cast<uint64_t>(counter)},
                   {.grid = {4, 1, 1}});
    INFO(all_text(result));
    CHECK(parameter[0] == 1);
    if (waited)
      CHECK(result.ok());
    else
      CHECK(only(result, ReportKind::global_race).disassembly.starts_with("global_store_dword"));
  }
}

TEST_CASE("a load in parts acquires at each of them", "[isa][order]") {
  // A swizzled buffer with elements of 4 bytes: 64 lanes, four places each.
  const TestKernel kernel("s_load_dwordx4 s[8:11], s[0:1], 0x0\n v_and_b32 v0, 0x3ff, v0\n"
                          "s_waitcnt lgkmcnt(0)\n s_or_b32 s9, s9, 0x80100000\n s_movk_i32 s10, 64\n"
                          "s_mov_b32 s11, 0x000a7000\n"
                          "buffer_load_dwordx4 v[4:7], v0, s[8:11], 0 idxen sc1\n s_waitcnt vmcnt(0)\n"
                          "s_endpgm\n");
  Memory memory;
  auto *buffer = static_cast<uint32_t *>(memory.allocate(4096));
  std::memset(buffer, 0, 4096);
  const LaunchResult result =
      kernel.run(memory, {reinterpret_cast<uint64_t>(buffer), 0}, {.grid = {2, 1, 1}});
  INFO(all_text(result));
  CHECK(result.ok());
}

TEST_CASE("a barrier passes on the order that one wave of a workgroup has seen", "[isa][order]") {
  for (bool barriers : {false, true}) {
    Device d;
    d.writers_neighbour.access(d.shadow, data, true);
    d.writers_neighbour.wait();
    if (barriers) meet(d.writer, d.writers_neighbour);
    d.writer.write_back();
    d.writer.wait();
    d.writer.release(d.atomics);
    d.reader.acquire(d.atomics);
    d.reader.order.invalidate();
    if (barriers) meet(d.reader, d.readers_neighbour);
    CHECK(d.readers_neighbour.access(d.shadow, data, false) ==
          (barriers ? AccessOrder::before : AccessOrder::none));
  }
}

TEST_CASE("order is passed on from workgroup to workgroup", "[isa][order]") {
  for (bool passed_on : {false, true}) {
    Device d;
    d.writer.access(d.shadow, data, true);
    d.writer.write_back();
    d.writer.wait();
    d.writer.release(d.atomics);
    if (passed_on) {
      d.reader.acquire(d.atomics);
      d.reader.order.invalidate();
    }
    d.reader.release(d.atomics, second_flag);
    d.third.acquire(d.atomics, second_flag);
    d.third.order.invalidate();
    CHECK(d.third.access(d.shadow, data, false) == (passed_on ? AccessOrder::before : AccessOrder::none));
  }
}

TEST_CASE("bytes of a dword are tracked separately", "[isa][order]") {
  Device d;
  auto enter = [&](TestWaveOrder &wave, uint64_t address, uint32_t bytes, bool store) {
    return d.shadow
        .enter(wave.pages, wave.order, 1, Footprint(&address, 1, bytes), {!store, store, false, false, 3})
        .order;
  };
  CHECK(enter(d.writer, data, 2, true) == AccessOrder::before);
  CHECK(enter(d.reader, data + 2, 2, false) == AccessOrder::before);
  CHECK(enter(d.reader, data + 1, 2, false) == AccessOrder::none);
  // Across the end of a page of the shadow.
  CHECK(enter(d.writer, data + 4092, 8, true) == AccessOrder::before);
  CHECK(enter(d.reader, data + 4096, 4, false) == AccessOrder::none);
}

TEST_CASE("loads of two workgroups are remembered", "[isa][order]") {
  Device d;
  CHECK(d.writer.access(d.shadow, data, false) == AccessOrder::before);
  CHECK(d.reader.access(d.shadow, data, false) == AccessOrder::before);
  // The last load is the wave's own; the one before is not.
  CHECK(d.reader.access(d.shadow, data, true) == AccessOrder::none);
}

TEST_CASE("every workgroup and every wave runs under every schedule", "[isa][order]") {
  using emulator::WaveSchedule;
  using emulator::WorkgroupSchedule;
  // Takes a ticket, and stores it at the place of the workgroup's waves.
  const TestKernel kernel(
      "s_load_dwordx4 s[8:11], s[0:1], 0x0\n v_and_b32 v0, 0x3ff, v0\n"
      "v_lshrrev_b32 v1, 6, v0\n s_nop 0\n v_readfirstlane_b32 s12, v1\n"
      "s_waitcnt lgkmcnt(0)\n s_lshl_b32 s13, s2, 1\n s_add_u32 s13, s13, s12\n"
      "s_lshl_b32 s13, s13, 2\n v_mov_b32 v4, s13\n v_mov_b32 v2, 0\n v_mov_b32 v3, 1\n"
      "s_mov_b64 exec, 1\n global_atomic_add v5, v2, v3, s[10:11] sc0\n s_waitcnt vmcnt(0)\n"
      "global_store_dword v4, v5, s[8:9]\n s_endpgm\n");
  constexpr uint32_t groups = 21; // not a multiple of the number of XCDs
  auto tickets = [&](WaveSchedule waves, WorkgroupSchedule workgroups, uint64_t seed) {
    Memory memory;
    auto *out = static_cast<uint32_t *>(memory.allocate(4096));
    auto *counter = static_cast<uint32_t *>(memory.allocate(4096));
    counter[0] = 0;
    Options options;
    options.threads = 1;
    options.wave_schedule = waves;
    options.workgroup_schedule = workgroups;
    options.seed = seed;
    const LaunchResult result =
        kernel.run(memory, {reinterpret_cast<uint64_t>(out), reinterpret_cast<uint64_t>(counter)},
                   {.waves = 2, .grid = {groups, 1, 1}}, options);
    INFO(all_text(result));
    CHECK(result.ok());
    CHECK(counter[0] == 2 * groups);
    return std::vector<uint32_t>(out, out + 2 * groups);
  };
  const auto greedy = tickets(WaveSchedule::greedy, WorkgroupSchedule::ascending, 1);
  for (uint32_t i = 0; i < 2 * groups; ++i)
    CHECK(greedy[i] == i);
  const auto descending = tickets(WaveSchedule::greedy, WorkgroupSchedule::descending, 1);
  for (uint32_t g = 0; g < groups; ++g)
    CHECK(descending[2 * g] == 2 * (groups - 1 - g));
  // XCD 0 has workgroups 0, 8 and 16, then comes 1.
  const auto by_xcd = tickets(WaveSchedule::greedy, WorkgroupSchedule::by_xcd, 1);
  CHECK(by_xcd[2 * 8] == 2 * 1);
  CHECK(by_xcd[2 * 16] == 2 * 2);
  CHECK(by_xcd[2 * 1] == 2 * 3);
  CHECK(by_xcd[2 * 7] == 2 * 19);
  auto permutation = [&](const std::vector<uint32_t> &order) {
    std::vector<uint32_t> sorted = order;
    std::sort(sorted.begin(), sorted.end());
    return sorted == greedy;
  };
  const auto one = tickets(WaveSchedule::random, WorkgroupSchedule::random, 1);
  CHECK(permutation(one));
  CHECK(permutation(by_xcd));
  CHECK(one != greedy);
  CHECK(one == tickets(WaveSchedule::random, WorkgroupSchedule::random, 1));
  CHECK(one != tickets(WaveSchedule::random, WorkgroupSchedule::random, 2));
  CHECK(permutation(tickets(WaveSchedule::random, WorkgroupSchedule::random, ~uint64_t(0) - 3)));
}

} // namespace sluice::test
