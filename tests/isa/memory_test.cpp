//===- memory_test.cpp - launches, and the memory they work on ------------------------------------------===//
#include "isa/memory_fixture.h"

namespace sluice::test {

TEST_CASE("a wave starts in the state that the dispatcher sets", "[isa][launch]") {
  // Each work-item stores its packed id and the workgroup's at its own place: block 8 x 4 x 3, grid 2 x 2 x
  // 1.
  const TestKernel kernel(
      "s_load_dwordx2 s[8:9], s[0:1], 0x8\n v_and_b32_e32 v1, 0x3ff, v0\n v_bfe_u32 v2, v0, 10, 10\n"
      "v_bfe_u32 v3, v0, 20, 10\n v_lshl_add_u32 v4, v2, 3, v1\n v_lshl_add_u32 v4, v3, 5, v4\n"
      "s_lshl_b32 s5, s3, 1\n s_add_i32 s5, s5, s2\n s_mulk_i32 s5, 0x60\n v_add_u32_e32 v4, s5, v4\n"
      "v_lshlrev_b32_e32 v4, 2, v4\n s_waitcnt lgkmcnt(0)\n s_lshl_b32 s6, s4, 30\n v_or_b32_e32 v0, s6, v0\n"
      "global_store_dword v4, v0, s[8:9]\n s_endpgm");
  Memory memory;
  auto *output = static_cast<uint32_t *>(memory.allocate(4 * 96 * 4));
  const std::array<uint64_t, 8> arguments{0, reinterpret_cast<uint64_t>(output)};
  const LaunchResult result = emulator::launch(kernel.program, "slot", {2, 2, 1}, {8, 4, 3}, 0,
                                               std::as_bytes(std::span(arguments)), memory, Options{});
  INFO(all_text(result));
  REQUIRE(result.ok());
  CHECK(result.counters.waves == 8);
  CHECK(result.counters.workgroups == 4);
  for (uint32_t i = 0; i < 4 * 96; ++i) {
    const uint32_t item = i % 96;
    CHECK(output[i] == ((item % 8) | (item / 8 % 4) << 10 | (item / 32) << 20));
  }
}

TEST_CASE("memory that wraps or leaves the address space is not attached", "[isa][launch]") {
  Memory memory;
  int own = 0;
  const uint64_t address = reinterpret_cast<uint64_t>(&own);
  for (uint64_t bytes : {uint64_t(0), UINT64_MAX, UINT64_MAX - address, UINT64_MAX - address + 1,
                         emulator::address_space_end - address + 1})
    CHECK_FALSE(memory.attach(&own, bytes, true));
  CHECK_FALSE(memory.attach(reinterpret_cast<void *>(emulator::address_space_end), 1, true));
  CHECK_FALSE(memory.find(&own).has_value());
  CHECK(memory.attach(&own, emulator::address_space_end - address, true));
  CHECK(memory.find(&own).has_value());
}

TEST_CASE("preloaded arguments are in registers when the wave starts", "[isa][launch]") {
  const TestKernel kernel("s_endpgm");
  Memory memory;
  auto *output = static_cast<uint32_t *>(memory.allocate(4));
  // Preloaded from dword 2 on: the pointer, then 77.
  const LaunchResult result =
      kernel.run(memory, {0, reinterpret_cast<uint64_t>(output), 77}, {.kernel = "preloaded"});
  INFO(all_text(result));
  REQUIRE(result.ok());
  CHECK(*output == 77);
}

TEST_CASE("a workgroup may wait for one that starts later", "[isa][launch]") {
  // Workgroup 0 waits until workgroup 3 has set a flag, on one host thread.
  for (const std::string sleep : {"s_sleep 1\n", ""}) {
    const TestKernel kernel(
        "s_load_dwordx2 s[8:9], s[0:1], 0x0\n v_mov_b32_e32 v1, 0\n s_waitcnt lgkmcnt(0)\n"
        "s_cmp_eq_u32 s2, 3\n s_cbranch_scc1 set\n s_cmp_eq_u32 s2, 0\n s_cbranch_scc0 out\n"
        "wait:\n" +
        sleep +
        "global_load_dword v2, v1, s[8:9] sc1\n s_waitcnt vmcnt(0)\n"
        "v_readfirstlane_b32 s6, v2\n s_cmp_eq_u32 s6, 0\n s_cbranch_scc1 wait\n s_endpgm\n"
        "set:\n v_mov_b32_e32 v2, 1\n global_store_dword v1, v2, s[8:9]\n out:\n s_endpgm\n");
    Memory memory;
    auto *flag = static_cast<uint32_t *>(memory.allocate(4));
    *flag = 0;
    Options options;
    options.checks = Checks::none();
    options.completion = CompletionOrder::early;
    const LaunchResult result =
        kernel.run(memory, {reinterpret_cast<uint64_t>(flag)}, {.grid = {4, 1, 1}}, options);
    INFO(all_text(result));
    CHECK(result.ok());
    CHECK(*flag == 1);
  }
}

TEST_CASE("launches that every driver refuses", "[isa][launch]") {
  const TestKernel kernel("s_endpgm");
  const Memory memory;
  const std::array<uint64_t, 8> arguments{};
  auto launch = [&](std::string_view name, std::array<uint32_t, 3> grid, std::array<uint32_t, 3> block,
                    uint32_t lds, size_t bytes) {
    return emulator::launch(kernel.program, name, grid, block, lds,
                            std::as_bytes(std::span(arguments)).first(bytes), memory);
  };
  CHECK(launch("slot", {1, 1, 1}, {64, 1, 1}, 65536, 64).ok());
  CHECK_THROWS_WITH(launch("none", {1, 1, 1}, {64, 1, 1}, 0, 64), Catch::Contains("no kernel \"none\""));
  CHECK_THROWS_WITH(launch("slot", {1, 0, 1}, {64, 1, 1}, 0, 64), Catch::Contains("grid.y is 0"));
  CHECK_THROWS_WITH(launch("slot", {1, 1, 1}, {64, 1, 0}, 0, 64), Catch::Contains("block.z is 0"));
  CHECK_THROWS_WITH(launch("slot", {1, 1, 1}, {1025, 1, 1}, 0, 64),
                    Catch::Contains("1025 x 1 x 1 work-items"));
  CHECK_THROWS_WITH(launch("slot", {1, 1, 1}, {64, 1, 1}, 65537, 64), Catch::Contains("65537 bytes of LDS"));
  CHECK_THROWS_WITH(launch("slot", {1, 1, 1}, {64, 1, 1}, 0, 60),
                    Catch::Contains("60 bytes of kernel arguments"));
}

TEST_CASE("until the wait, a late load leaves the register as it was", "[isa][memory]") {
  // With the check off, the value itself shows when the load arrives.
  const TestKernel kernel(memory_setup + "v_mov_b32_e32 v4, 0x55\n global_load_dword v4, v1, s[8:9]\n"
                                         "v_mov_b32_e32 v5, v4\n s_waitcnt vmcnt(0)\n"
                                         "global_store_dwordx2 v3, v[4:5], s[12:13]\n s_endpgm\n");
  for (CompletionOrder order : {CompletionOrder::late, CompletionOrder::early}) {
    Memory memory;
    auto *input = static_cast<uint32_t *>(memory.allocate(64 * 4));
    auto *output = static_cast<uint32_t *>(memory.allocate(64 * 8));
    for (uint32_t i = 0; i < 64; ++i)
      input[i] = 1000 + i;
    Options options;
    options.checks = Checks::none();
    options.completion = order;
    CHECK(
        kernel
            .run(memory, {reinterpret_cast<uint64_t>(input), reinterpret_cast<uint64_t>(output)}, {}, options)
            .ok());
    CHECK(output[2 * 63] == 1063);
    CHECK(output[2 * 63 + 1] == (order == CompletionOrder::late ? 0x55 : 1063));
  }
}

TEST_CASE("a load out of bounds gives 0, and the others are as always", "[isa][memory]") {
  const TestKernel kernel(memory_setup + "global_load_dword v4, v1, s[8:9] offset:128\n" + wait_all +
                          "global_store_dword v1, v4, s[12:13]\n s_endpgm\n");
  Memory memory;
  auto *input = static_cast<uint32_t *>(memory.allocate(64 * 4));
  auto *output = static_cast<uint32_t *>(memory.allocate(64 * 4));
  for (uint32_t i = 0; i < 64; ++i)
    input[i] = 1000 + i;
  only(kernel.run(memory, {reinterpret_cast<uint64_t>(input), reinterpret_cast<uint64_t>(output)}),
       ReportKind::global_out_of_bounds);
  CHECK(output[31] == 1063);
  CHECK(output[32] == 0);
}

TEST_CASE("loads through null and freed pointers are reported", "[isa][memory]") {
  const TestKernel kernel(memory_setup + "global_load_dword v4, v1, s[8:9]\n" + wait_all + "s_endpgm\n");
  Memory memory;
  void *const data = memory.allocate(64 * 4);
  std::memset(data, 0, 64 * 4);
  const std::array<uint64_t, 8> arguments{reinterpret_cast<uint64_t>(data)};
  CHECK(kernel.run(memory, arguments).ok());
  REQUIRE(memory.release(data));
  for (const auto &[kind, pointers] :
       {std::pair(ReportKind::global_freed, arguments),
        std::pair(ReportKind::global_out_of_bounds, std::array<uint64_t, 8>{})})
    CHECK_THAT(only(kernel.run(memory, pointers), kind).disassembly, Catch::StartsWith("global_load_dword"));
}

TEST_CASE("device memory", "[isa][memory]") {
  Memory memory(1 << 20, 64 << 10);
  CHECK(memory.allocate(0) == nullptr);
  CHECK(memory.allocate(2 << 20) == nullptr);
  void *first = memory.allocate(1000);
  REQUIRE(first != nullptr);
  CHECK(reinterpret_cast<uint64_t>(first) % 4096 == 0);
  CHECK(memory.used_bytes() == 1000);
  CHECK(memory.find(static_cast<char *>(first) + 999)->address == reinterpret_cast<uint64_t>(first));
  CHECK_FALSE(memory.find(static_cast<char *>(first) + 1000));
  CHECK_FALSE(memory.release(static_cast<char *>(first) + 8));
  CHECK(memory.release(first));
  CHECK_FALSE(memory.release(first));
  CHECK_FALSE(memory.find(first));
  CHECK(memory.used_bytes() == 0);
  // Still known as freed, until the quarantine is full.
  CHECK(memory.snapshot()->find(reinterpret_cast<uint64_t>(first), 4)->freed);
  for (int i = 0; i < 4; ++i)
    CHECK(memory.release(memory.allocate(32 << 10)));
  const emulator::MemoryBlock *old = memory.snapshot()->find(reinterpret_cast<uint64_t>(first), 4);
  CHECK((old == nullptr || old->bytes != 1000));

  // Holders of a table may access its blocks, freed or not, and the map of their written bytes.
  void *const held = memory.allocate(128 << 10, Memory::Contents::undefined);
  std::memset(held, 7, 128 << 10);
  const std::shared_ptr<const emulator::BlockTable> table = memory.snapshot();
  CHECK(memory.release(held)); // larger than the quarantine
  CHECK(memory.snapshot()->find(reinterpret_cast<uint64_t>(held), 1) == nullptr);
  CHECK(static_cast<const volatile char *>(held)[1000] != 0);
  const emulator::MemoryBlock *const block = table->find(reinterpret_cast<uint64_t>(held), 128 << 10);
  REQUIRE(block != nullptr);
  emulator::mark_written(*block, block->address, 1000);
  CHECK(is_written(*block, block->address, 1000));

  std::array<uint64_t, 16> host{};
  CHECK(memory.attach(host.data(), sizeof host, false));
  CHECK_FALSE(memory.attach(host.data() + 4, 8, true));
  CHECK_FALSE(memory.find(&host[3])->writable);
  CHECK_FALSE(memory.release(host.data()));
  CHECK(memory.detach(host.data()));
  CHECK_FALSE(memory.detach(host.data()));
}

} // namespace sluice::test
