//===- global_sync_test.cpp - barriers of all workgroups of a cooperative launch ------------------------===//
//
// Every program runs on one thread and on two, with all workgroups resident.
//
//===----------------------------------------------------------------------------------------------------===//
#include <catch2/catch.hpp>

#include "isa/kernel_fixture.h"

namespace sluice::test {

namespace {

constexpr uint32_t groups = 7;

// s[4:5]: the memory; s2: the workgroup; v1: 4 times that; v3: its neighbour's; v2: the operand that makes a
// barrier of all workgroups.
const std::string setup = R"(
  s_load_dwordx2 s[4:5], s[0:1], 0x0
  s_mov_b32 m0, 0
  s_lshl_b32 s8, s2, 2
  s_add_u32 s9, s2, 1
  s_cmp_eq_u32 s9, 7
  s_cselect_b32 s9, 0, s9
  s_lshl_b32 s9, s9, 2
  v_mov_b32_e32 v1, s8
  v_mov_b32_e32 v3, s9
  v_mov_b32_e32 v2, 6
  s_waitcnt lgkmcnt(0)
  s_mov_b64 exec, 1
)";
const std::string barrier = "ds_gws_barrier v2 gds\n s_waitcnt lgkmcnt(0)\n";
const std::string write_back = "buffer_wbl2 sc1\n";
const std::string wait = "s_waitcnt vmcnt(0)\n";
const std::string invalidate = "buffer_inv sc1\n";
const std::string store_own = "v_add_u32_e32 v4, 100, v1\n global_store_dword v1, v4, s[4:5]\n";
const std::string load_next = "global_load_dword v5, v3, s[4:5]\n s_waitcnt vmcnt(0)\n";
const std::string store_found = "global_store_dword v1, v5, s[4:5] offset:1024\n";
const std::string end = "s_endpgm\n";

struct Launched {
  LaunchResult result;
  std::vector<uint32_t> values;
};

Launched run(const std::string &body, uint32_t threads, Options options = {}, uint32_t workgroups = groups) {
  Memory memory;
  auto *const data = static_cast<uint32_t *>(memory.allocate(16384));
  std::memset(data, 0, 16384);
  const TestKernel kernel(setup + body + end);
  options.threads = threads;
  options.cooperative = true;
  LaunchResult result =
      kernel.run(memory, {reinterpret_cast<uint64_t>(data)}, {.grid = {workgroups, 1, 1}}, options);
  return {std::move(result), std::vector<uint32_t>(data, data + 4096)};
}

void expect_neighbours(const Launched &launched) {
  INFO(all_text(launched.result));
  CHECK(launched.result.ok());
  for (uint32_t i = 0; i < groups; ++i)
    CHECK(launched.values[256 + i] == 100 + 4 * ((i + 1) % groups));
}

ReportKind only_kind(const std::string &body, Options options = {}) {
  const LaunchResult result = run(body, 1, options).result;
  INFO(all_text(result));
  REQUIRE(!result.ok());
  for (const Report &report : result.reports)
    CHECK(report.kind == result.reports.front().kind);
  return result.reports.front().kind;
}

} // namespace

TEST_CASE("after a barrier of all workgroups each sees what the others wrote", "[isa][global_sync]") {
  for (uint32_t threads : {1u, 2u, 3u})
    for (int order = 0; order < 4; ++order) {
      Options options;
      options.workgroup_schedule = emulator::WorkgroupSchedule(order);
      options.wave_schedule = emulator::WaveSchedule(order % 3);
      options.completion = CompletionOrder(order % 3);
      expect_neighbours(run(store_own + write_back + wait + barrier + invalidate + load_next + store_found,
                            threads, options));
      options.checks = Checks::none();
      options.completion = CompletionOrder::early;
      expect_neighbours(run(store_own + write_back + wait + barrier + invalidate + load_next + store_found,
                            threads, options));
    }
}

TEST_CASE("a barrier is good for many rounds", "[isa][global_sync]") {
  // A number goes round: after as many rounds as there are workgroups, each has its own number again.
  std::string body = store_own;
  for (uint32_t round = 0; round < groups; ++round)
    body += write_back + wait + barrier + invalidate + load_next + barrier +
            "global_store_dword v1, v5, s[4:5]\n";
  body += store_found;
  for (uint32_t threads : {1u, 2u}) {
    const Launched launched = run(body, threads);
    INFO(all_text(launched.result));
    CHECK(launched.result.ok());
    for (uint32_t i = 0; i < groups; ++i)
      CHECK(launched.values[256 + i] == 100 + 4 * i);
  }
}

TEST_CASE("a barrier orders data that was written back before and invalidated after", "[isa][global_sync]") {
  CHECK(only_kind(store_own + wait + barrier + invalidate + load_next) == ReportKind::stale_cache);
  CHECK(only_kind(store_own + write_back + barrier + invalidate + load_next) == ReportKind::global_race);
  CHECK(only_kind(store_own + write_back + wait + barrier + load_next) == ReportKind::stale_cache);
  CHECK(only_kind(store_own + write_back + wait + invalidate + load_next) == ReportKind::global_race);
  // Like HIP's grid.sync: dropped before the barrier, and not used since.
  expect_neighbours(run(store_own + write_back + wait + invalidate + barrier + load_next + store_found, 1));
  CHECK(only_kind(store_own + write_back + wait + invalidate + "global_load_dword v6, v1, s[4:5]\n" + wait +
                  barrier + load_next) == ReportKind::stale_cache);
}

TEST_CASE("waves of a workgroup continue when the one that met the others returns", "[isa][global_sync]") {
  // Two waves: both store, the first one meets the other workgroups for both, the second one reads.
  const std::string part =
      "v_lshrrev_b32_e32 v7, 6, v0\n s_nop 4\n v_readfirstlane_b32 s12, v7\n s_mov_b64 exec, 1\n"
      "s_lshl_b32 s13, s12, 9\n s_nop 4\n v_add_u32_e32 v1, s13, v1\n v_add_u32_e32 v3, s13, v3\n";
  const std::string meet =
      "s_barrier\n s_cmp_eq_u32 s12, 0\n s_cbranch_scc0 skip\n" + barrier + "skip:\n s_barrier\n";
  auto launch = [&](const std::string &before, const std::string &after) {
    Memory memory;
    auto *const data = static_cast<uint32_t *>(memory.allocate(16384));
    std::memset(data, 0, 16384);
    const std::string begin = setup.substr(0, setup.find("s_mov_b64 exec"));
    const TestKernel kernel(begin + "v_and_b32_e32 v0, 0x3ff, v0\n" + part + store_own + before + meet +
                            after + load_next + end);
    Options options;
    options.cooperative = true;
    return kernel.run(memory, {reinterpret_cast<uint64_t>(data)}, {.waves = 2, .grid = {groups, 1, 1}},
                      options);
  };
  CHECK(all_text(launch(write_back + wait + invalidate, "")) == "");
  CHECK(all_text(launch(write_back + wait, invalidate)) == "");
  // One wave has not dropped the lines that it may have loaded.
  const LaunchResult stale =
      launch(write_back + wait + "s_cmp_eq_u32 s12, 0\n s_cbranch_scc0 keep\n" + invalidate + "keep:\n", "");
  REQUIRE(!stale.ok());
  CHECK(stale.reports.front().kind == ReportKind::stale_cache);
}

TEST_CASE("a resource is named by M0 and the offset, its waves by the first active lane",
          "[isa][global_sync]") {
  // The first workgroup prepares number 5, then all meet there: the even ones call it 3 + 2, the others 5.
  const std::string prepare = R"(
    s_cmp_eq_u32 s2, 0
    s_cbranch_scc0 ready
    s_mov_b64 exec, 3
    v_lshlrev_b32_e32 v6, 6, v0
    v_add_u32_e32 v8, 6, v6
    s_mov_b32 m0, 0x30000
    s_nop 0
    ds_gws_init v8 offset:2 gds
    s_mov_b64 exec, 1
    s_waitcnt lgkmcnt(0)
  ready:
    s_mov_b32 m0, 0
    s_nop 0
  )" + barrier;
  const std::string meet = R"(
    s_bitcmp1_b32 s2, 0
    s_cbranch_scc1 odd
    s_mov_b32 m0, 0x30000
    s_nop 0
    ds_gws_barrier v2 offset:2 gds
    s_branch met
  odd:
    s_mov_b32 m0, 0x50000
    s_nop 0
    ds_gws_barrier v2 gds
  met:
    s_waitcnt lgkmcnt(0)
  )";
  const std::string lanes = "v_and_b32_e32 v0, 0x3ff, v0\n";
  for (uint32_t threads : {1u, 2u})
    expect_neighbours(
        run(lanes + prepare + store_own + write_back + wait + meet + invalidate + load_next + store_found,
            threads));
  // Numbers wrap at 64.
  expect_neighbours(run("s_mov_b32 m0, 0x3f0000\n s_nop 0\n" + store_own + write_back + wait +
                            "ds_gws_barrier v2 offset:1 gds\n s_waitcnt lgkmcnt(0)\n" + invalidate +
                            load_next + store_found,
                        1));
}

TEST_CASE("a barrier that can never complete is reported", "[isa][global_sync]") {
  for (uint32_t threads : {1u, 2u}) {
    // The last workgroup does not arrive.
    const LaunchResult result =
        run("s_cmp_eq_u32 s2, 6\n s_cbranch_scc1 leave\n" + barrier + "leave:\n", threads).result;
    const Report report = only(result, ReportKind::barrier_deadlock);
    CHECK(report.disassembly.starts_with("ds_gws_barrier"));
    CHECK(report.message == "waits for other workgroups, but every remaining wave is also waiting");
    // One workgroup arrives once more than the others.
    only(run(barrier + "s_cmp_eq_u32 s2, 6\n s_cbranch_scc0 leave\n" + barrier + "leave:\n", threads).result,
         ReportKind::barrier_deadlock);
  }
}

TEST_CASE("global wave sync is refused where it may hang", "[isa][global_sync]") {
  Memory memory;
  const TestKernel kernel(setup + barrier + end);
  const Report plain = only(kernel.run(memory, {}, {}), ReportKind::unknown_instruction);
  CHECK(plain.message == "global wave sync is for cooperative launches, whose workgroups are all resident");
  const Report lanes =
      only(run("s_mov_b64 exec, 0\n" + barrier, 1, {}, 1).result, ReportKind::unknown_instruction);
  CHECK(lanes.message == "EXEC is 0: global wave sync may hang without an active lane");
  const Report ready =
      only(run("ds_gws_barrier v2 offset:9 gds\n", 1, {}, 1).result, ReportKind::unknown_instruction);
  CHECK(ready.message == "no ds_gws_init has set how many waves meet at this barrier");
}

TEST_CASE("the checks know global wave sync", "[isa][global_sync]") {
  // M0 is read one wait state too early; the number was never written; and lgkmcnt counts.
  const std::string value = "v_mov_b32_e32 v2, 0\n";
  CHECK(only(run(value + "s_mov_b32 m0, 0\n" + barrier, 1, {}, 1).result, ReportKind::hazard)
            .disassembly.starts_with("ds_gws_barrier"));
  CHECK(only(run("ds_gws_barrier v20 gds\n", 1, {}, 1).result, ReportKind::register_uninitialised)
            .disassembly.starts_with("ds_gws_barrier"));
  const std::string read =
      value + "v_mov_b32_e32 v9, 0\n ds_write_b32 v9, v9\n s_waitcnt lgkmcnt(0)\n ds_read_b32 v10, v9\n";
  const std::string use = "v_add_u32_e32 v10, v10, v10\n s_waitcnt lgkmcnt(0)\n";
  CHECK(all_text(run(read + "ds_gws_barrier v2 gds\n s_waitcnt lgkmcnt(1)\n" + use, 1, {}, 1).result) == "");
  only(run(read + "ds_gws_barrier v2 gds\n s_waitcnt lgkmcnt(2)\n" + use, 1, {}, 1).result,
       ReportKind::pending_register);
  CHECK(all_text(run(read + "ds_gws_init v2 gds\n s_waitcnt lgkmcnt(1)\n" + use, 1, {}, 1).result) == "");
}

TEST_CASE("workgroups of a cooperative launch run side by side", "[isa][global_sync]") {
  // Each counts itself and spins, without sleeping, until all have: none gets far on its own.
  const std::string spin = R"(
    v_mov_b32_e32 v6, 1
    v_mov_b32_e32 v7, 0
    global_atomic_add v7, v6, s[4:5] offset:2048
  again:
    global_load_dword v8, v7, s[4:5] offset:2048 sc1
    s_waitcnt vmcnt(0)
    v_readfirstlane_b32 s12, v8
    s_cmp_lt_u32 s12, 1500
    s_cbranch_scc1 again
  )";
  for (uint32_t threads : {1u, 2u}) {
    Options options;
    options.instruction_budget =
        100'000; // a workgroup on its own would spin for ten million before the next one starts
    options.checks = Checks::none();
    options.completion = CompletionOrder::early;
    const Launched launched = run(spin, threads, options, 1500); // more than run at once in ordinary launches
    INFO(all_text(launched.result));
    CHECK(launched.result.ok());
    CHECK(launched.values[512] == 1500);
    CHECK(launched.result.counters.workgroups == 1500);
  }
}

} // namespace sluice::test
