//===- checks_test.cpp - programs with one mistake, and their twins without it --------------------------===//
//
// Each mistake must be reported at the right instruction, with its disassembly; the twin must stay silent,
// under every order of completion.
//
//===----------------------------------------------------------------------------------------------------===//
#include "isa/checked_programs.h"

namespace sluice::test {

TEST_CASE("a copy into LDS is not there until vmcnt says so", "[isa][checks]") {
  const Report report = expect_report(setup + copy + read + wait_lds + wait_copy + end, ReportKind::lds_race,
                                      "ds_read_b32", "buffer_load_dword");
  CHECK(report.lane == 0);
  CHECK(report.address == 0);
  expect_silence(setup + copy + wait_copy + read + wait_lds + end);
}

TEST_CASE("a wait for one copy too few is found", "[isa][checks]") {
  const std::string two_copies = setup + copy + "s_movk_i32 m0, 0x100\n s_nop 0\n" + copy;
  const std::string late_read = "ds_read_b32 v3, v1 offset:256\n";
  expect_report(two_copies + "s_waitcnt vmcnt(1)\n" + late_read + wait_lds + wait_copy + end,
                ReportKind::lds_race, "ds_read_b32 v3, v1 offset:256", "buffer_load_dword");
  expect_silence(two_copies + "s_waitcnt vmcnt(1)\n" + read + wait_lds + wait_copy + end);
  expect_silence(two_copies + wait_copy + late_read + wait_lds + end);
}

TEST_CASE("another wave sees a copy only behind a barrier", "[isa][checks]") {
  // Wave 0 copies; wave 1 reads the same bytes.
  const std::string head = setup + "s_cmp_eq_u32 s5, 0\n s_cbranch_scc0 other\n" + copy;
  const std::string tail = "v_subrev_u32_e32 v1, 0x100, v1\n" + read + wait_lds + "done:\n" + end;
  const LaunchShape two{.waves = 2};
  expect_report(head + wait_copy + "s_branch done\n other:\n" + tail, ReportKind::lds_race, "ds_read_b32",
                "buffer_load_dword", two);
  expect_report(head + "s_barrier\n" + wait_copy + "s_branch done\n other:\n s_barrier\n" + tail,
                ReportKind::lds_race, "ds_read_b32", "buffer_load_dword", two);
  expect_silence(head + wait_copy + "s_barrier\n s_branch done\n other:\n s_barrier\n" + tail, two);
}

TEST_CASE("a read that was not waited for before a barrier races with the next write", "[isa][checks]") {
  const std::string write_own = "v_mov_b32_e32 v4, 7\n ds_write_b32 v1, v4\n" + wait_lds + "s_barrier\n";
  // Each wave reads the other's part, and after the barrier overwrites its own.
  const std::string read_other = "v_xor_b32_e32 v5, 0x100, v1\n ds_read_b32 v3, v5\n";
  const std::string write_again = "ds_write_b32 v1, v4 offset:0\n" + wait_lds + end;
  const LaunchShape two{.waves = 2};
  expect_report(setup + write_own + read_other + "s_barrier\n" + write_again,
                ReportKind::lds_write_after_read, "ds_write_b32 v1, v4", "ds_read_b32", two);
  // Waited for, but no barrier; only wave 0 writes.
  expect_report(setup + write_own + read_other + wait_lds + "s_cmp_eq_u32 s5, 0\n s_cbranch_scc0 out\n" +
                    write_again + "out:\n" + end,
                ReportKind::lds_race, "ds_read_b32", "ds_write_b32 v1, v4", two);
  expect_silence(setup + write_own + read_other + wait_lds + "s_barrier\n" + write_again, two);
}

TEST_CASE("a copy must not overtake reads of the bytes it overwrites", "[isa][checks]") {
  const std::string first = setup + copy + wait_copy + "s_barrier\n";
  const LaunchShape two{.waves = 2, .lds_bytes = 256};
  // Both waves read the bytes that both copied (same M0): wave 1's copy conflicts with wave 0's, so only wave
  // 0 copies.
  const std::string only_first =
      "s_cmp_eq_u32 s5, 0\n s_cbranch_scc0 skip%\n" + copy + wait_copy + "skip%:\n s_barrier\n";
  auto numbered = [&](const char *number) {
    std::string text = only_first;
    for (size_t at; (at = text.find('%')) != std::string::npos;)
      text.replace(at, 1, number);
    return text;
  };
  const std::string read_low = "v_and_b32_e32 v5, 0xff, v1\n ds_read_b32 v3, v5\n";
  expect_report(setup + numbered("1") + read_low + "s_barrier\n" + numbered("2") + wait_lds + end,
                ReportKind::lds_race, "buffer_load_dword", "ds_read_b32", two);
  expect_silence(setup + numbered("1") + read_low + wait_lds + "s_barrier\n" + numbered("2") + end, two);
}

TEST_CASE("a wave's own read in flight and its own copy are in no order", "[isa][checks]") {
  const std::string filled = setup + copy + wait_copy;
  expect_report(filled + read + copy + "s_waitcnt vmcnt(0) lgkmcnt(0)\n" + end, ReportKind::lds_race,
                "buffer_load_dword", "ds_read_b32");
  expect_silence(filled + read + wait_lds + copy + wait_copy + end);
}

TEST_CASE("two waves that write the same byte race; neighbouring bytes do not", "[isa][checks]") {
  const LaunchShape two{.waves = 2};
  const std::string same =
      "v_and_b32_e32 v5, 63, v0\n v_mov_b32_e32 v4, v2\n ds_write_b8 v5, v4\n" + wait_lds;
  expect_report(setup + same + end, ReportKind::lds_race, "ds_write_b8", "ds_write_b8", two);
  // Bytes 2i and 2i + 1.
  const std::string apart = "v_and_b32_e32 v5, 63, v0\n v_lshl_add_u32 v5, v5, 1, v2\n v_mov_b32_e32 v4, 1\n"
                            "ds_write_b8 v5, v4\n" +
                            wait_lds;
  expect_silence(setup + apart + end, two);
}

TEST_CASE("atomics of different waves may meet, other accesses may not meet them", "[isa][checks]") {
  const LaunchShape two{.waves = 2};
  const std::string zero = "v_mov_b32_e32 v4, 0\n v_mov_b32_e32 v5, 0\n ds_write_b32 v5, v4\n" + wait_lds;
  const std::string first_zeroes = "s_cmp_eq_u32 s5, 0\n s_cbranch_scc0 go\n" + zero + "go:\n s_barrier\n";
  const std::string add = "v_mov_b32_e32 v5, 0\n v_mov_b32_e32 v4, 1\n ds_add_u32 v5, v4\n" + wait_lds;
  expect_silence(setup + first_zeroes + add + end, two);
  expect_report(setup + first_zeroes + add + "ds_read_b32 v6, v5\n" + wait_lds + end, ReportKind::lds_race,
                "ds_", "ds_", two);
}

TEST_CASE("two copies into the same bytes are in no order", "[isa][checks]") {
  expect_report(setup + copy + copy + wait_copy + end, ReportKind::lds_race, "buffer_load_dword",
                "buffer_load_dword");
  expect_silence(setup + copy + wait_copy + copy + wait_copy + end);
  // Nor are a write that was not waited for and a copy.
  const std::string write = "v_mov_b32_e32 v4, 1\n ds_write_b32 v1, v4\n";
  expect_report(setup + write + copy + "s_waitcnt vmcnt(0) lgkmcnt(0)\n" + end, ReportKind::lds_race,
                "buffer_load_dword", "ds_write_b32");
  expect_silence(setup + write + wait_lds + copy + wait_copy + end);
}

TEST_CASE("a wave must not end while its copy is in flight", "[isa][checks]") {
  expect_report(setup + copy + end, ReportKind::lds_copy_at_end, "buffer_load_dword");
  expect_silence(setup + copy + wait_copy + end);
}

TEST_CASE("registers of loads in flight must not be touched", "[isa][checks]") {
  const std::string load = setup + "global_load_dword v3, v1, s[8:9]\n";
  expect_report(load + "v_add_u32_e32 v4, 1, v3\n" + wait_copy + end, ReportKind::pending_register,
                "v_add_u32", "global_load_dword");
  expect_report(load + "v_mov_b32_e32 v3, 1\n" + wait_copy + end, ReportKind::pending_register, "v_mov_b32",
                "global_load_dword");
  expect_silence(load + wait_copy + "v_add_u32_e32 v4, 1, v3\n" + end);

  const std::string two_loads = load + "global_load_dword v5, v1, s[8:9]\n s_waitcnt vmcnt(1)\n";
  expect_silence(two_loads + "v_mov_b32_e32 v4, v3\n" + end);
  expect_report(two_loads + "v_mov_b32_e32 v4, v5\n" + end, ReportKind::pending_register, "v_mov_b32",
                "global_load_dword v5");

  expect_report("s_load_dwordx2 s[8:9], s[0:1], 0x0\n s_mov_b32 s4, s9\n s_waitcnt lgkmcnt(0)\n" + end,
                ReportKind::pending_register, "s_mov_b32", "s_load_dwordx2");
  const std::string lds_load = setup + copy + wait_copy + read;
  expect_report(lds_load + "v_mov_b32_e32 v4, v3\n" + wait_lds + end, ReportKind::pending_register,
                "v_mov_b32", "ds_read_b32");
  // A second load of the same kind into the register follows the first in order.
  expect_silence(load + "global_load_dword v3, v1, s[8:9] offset:4\n" + wait_copy + "v_mov_b32_e32 v4, v3\n" +
                 end);
}

TEST_CASE("the result of a flat load is there when both counters say so", "[isa][checks]") {
  const std::string head = setup + "v_mov_b32_e32 v11, s9\n v_add_co_u32_e32 v10, vcc, s8, v1\n s_nop 1\n"
                                   "v_addc_co_u32_e32 v11, vcc, 0, v11, vcc\n";
  const std::string load = head + "flat_load_dword v3, v[10:11]\n", use = "v_mov_b32_e32 v4, v3\n";
  expect_report(load + wait_copy + use + wait_lds + end, ReportKind::pending_register, "v_mov_b32",
                "flat_load_dword");
  expect_report(load + wait_lds + use + wait_copy + end, ReportKind::pending_register, "v_mov_b32",
                "flat_load_dword");
  expect_silence(load + wait_copy + wait_lds + use + end);
  expect_silence(load + wait_lds + wait_copy + use + end);
  // Only vmcnt counts a load after a flat store.
  expect_silence(head + "flat_store_dword v[10:11], v1\n global_load_dword v3, v1, s[8:9] offset:1024\n" +
                 wait_copy + use + wait_lds + end);
  // A count distinguishes the load from later ones.
  const std::string later = load + "global_load_dword v5, v1, s[8:9]\n";
  expect_report(later + "s_waitcnt vmcnt(1) lgkmcnt(0)\n v_mov_b32_e32 v4, v5\n" + wait_copy + end,
                ReportKind::pending_register, "v_mov_b32", "global_load_dword");
}

TEST_CASE("a count of lgkmcnt says nothing about scalar loads", "[isa][checks]") {
  const std::string two_loads = "s_load_dwordx2 s[8:9], s[0:1], 0x0\n s_load_dwordx2 s[10:11], s[0:1], 0x8\n";
  expect_report(two_loads + "s_waitcnt lgkmcnt(1)\n s_mov_b32 s4, s8\n s_waitcnt lgkmcnt(0)\n" + end,
                ReportKind::pending_register, "s_mov_b32", "s_load_dwordx2");
  expect_silence(two_loads + "s_waitcnt lgkmcnt(0)\n s_mov_b32 s4, s8\n" + end);
}

TEST_CASE("until the wait, a late load leaves the register as it was", "[isa][checks]") {
  // With the check off, the value itself shows when the load arrives.
  const TestKernel kernel(setup +
                          "v_mov_b32_e32 v4, 0x55\n global_load_dword v4, v1, s[8:9] offset:4\n"
                          "v_mov_b32_e32 v5, v4\n s_waitcnt vmcnt(0)\n v_lshlrev_b32_e32 v2, 3, v0\n"
                          "global_store_dwordx2 v2, v[4:5], s[8:9] offset:2048\n" +
                          end);
  for (CompletionOrder order : {CompletionOrder::late, CompletionOrder::early}) {
    Buffers buffers;
    Options options;
    options.checks = Checks::none();
    options.completion = order;
    const LaunchResult result = kernel.run(buffers.memory, buffers.arguments(), {}, options);
    CHECK(result.ok());
    CHECK(buffers.data[512 + 2 * 63] == 64);
    CHECK(buffers.data[512 + 2 * 63 + 1] == (order == CompletionOrder::late ? 0x55 : 64));
  }
}

TEST_CASE("addresses outside every block, freed and read-only ones are reported", "[isa][checks]") {
  const std::string load = "global_load_dword v3, v1, s[8:9]\n" + wait_copy + end;
  auto with_offset = [&](const std::string &offset) {
    return setup + "s_add_u32 s8, s8, " + offset + "\n s_addc_u32 s9, s9, 0\n" + load;
  };
  // The last dword in the block, the first beyond it.
  expect_silence(with_offset("0xff00"));
  const Report report =
      expect_report(with_offset("0xff04"), ReportKind::global_out_of_bounds, "global_load_dword");
  CHECK(report.lane == 63);
  CHECK_THAT(report.message, Catch::Contains("65536 bytes after the start of a block of 65536 bytes"));
  expect_report("v_mov_b32_e32 v2, 0\n v_mov_b32_e32 v3, 0\n global_load_dword v4, v[2:3], off\n" +
                    wait_copy + end,
                ReportKind::global_out_of_bounds, "global_load_dword");

  // Kernel arguments may be read, not written.
  const std::string arguments = "v_mov_b32_e32 v1, 0\n v_mov_b32_e32 v3, 1\n";
  expect_silence(arguments + "global_load_dword v3, v1, s[0:1]\n" + wait_copy + end);
  expect_report(arguments + "global_store_dword v1, v3, s[0:1]\n" + end, ReportKind::global_read_only,
                "global_store_dword");

  Buffers buffers;
  const TestKernel kernel(setup + load);
  const std::array<uint64_t, 8> dangling = buffers.arguments();
  CHECK(kernel.run(buffers.memory, dangling).ok());
  REQUIRE(buffers.memory.release(buffers.data));
  const Report freed = only(kernel.run(buffers.memory, dangling), ReportKind::global_freed);
  CHECK_THAT(freed.disassembly, Catch::StartsWith("global_load_dword"));
}

TEST_CASE("a launch stops when one mistake goes on and on", "[isa][checks]") {
  const TestKernel kernel(setup +
                          "s_add_u32 s8, s8, 0xff04\n s_addc_u32 s9, s9, 0\n"
                          "again:\n global_load_dword v3, v1, s[8:9]\n" +
                          wait_copy + "s_branch again\n" + end);
  Buffers buffers;
  Options options;
  options.instruction_budget = 1 << 24; // so that a launch that did not stop would end with another report
  const Report report =
      only(kernel.run(buffers.memory, buffers.arguments(), {}, options), ReportKind::global_out_of_bounds);
  CHECK(report.count >= 1 << 16);
}

TEST_CASE("a launch stops at its first report if asked to", "[isa][checks]") {
  const TestKernel kernel(setup + read + "s_barrier\n" + read + wait_lds + end);
  for (bool stop : {true, false}) {
    Buffers buffers;
    Options options;
    options.stop_at_report = stop;
    const LaunchResult result = kernel.run(buffers.memory, buffers.arguments(), {}, options);
    CHECK(result.reports.size() == (stop ? 1 : 2));
  }
}

TEST_CASE("a load out of bounds gives 0, and the others are as always", "[isa][checks]") {
  const TestKernel kernel(setup +
                          "s_add_u32 s12, s8, 0xff80\n s_addc_u32 s13, s9, 0\n"
                          "global_load_dword v3, v1, s[12:13]\n" +
                          wait_copy + "global_store_dword v1, v3, s[8:9]\n" + end);
  Buffers buffers;
  only(kernel.run(buffers.memory, buffers.arguments()), ReportKind::global_out_of_bounds);
  CHECK(buffers.data[31] == 0xff80 / 4 + 31);
  CHECK(buffers.data[32] == 0);
}

TEST_CASE("scalar loads are checked as well", "[isa][checks]") {
  expect_report(setup + "s_load_dwordx4 s[12:15], s[8:9], 0xfff8\n" + wait_lds + end,
                ReportKind::global_out_of_bounds, "s_load_dwordx4");
  expect_silence(setup + "s_load_dwordx4 s[12:15], s[8:9], 0xfff0\n" + wait_lds + end);
}

TEST_CASE("LDS beyond the allocation is reported", "[isa][checks]") {
  const LaunchShape small{.lds_bytes = 256};
  const std::string write = "v_mov_b32_e32 v4, 1\n ds_write_b32 v1, v4";
  expect_silence(setup + write + "\n" + wait_lds + end, small);
  const Report report = expect_report(setup + write + " offset:4\n" + wait_lds + end,
                                      ReportKind::lds_out_of_bounds, "ds_write_b32", "", small);
  CHECK(report.lane == 63);
  CHECK(report.address == 256);
  expect_report(setup + "s_movk_i32 m0, 0x80\n s_nop 0\n" + copy + wait_copy + end,
                ReportKind::lds_out_of_bounds, "buffer_load_dword", "", small);
}

TEST_CASE("LDS that nobody wrote is reported when read", "[isa][checks]") {
  const Report report =
      expect_report(setup + read + wait_lds + end, ReportKind::lds_uninitialised, "ds_read_b32");
  CHECK(report.lane == 0);
  // Half a dword was written.
  expect_report(setup + "v_mov_b32_e32 v4, 0\n ds_write_b16 v1, v4\n" + wait_lds + read + wait_lds + end,
                ReportKind::lds_uninitialised, "ds_read_b32");
  expect_silence(setup + "v_mov_b32_e32 v4, 0\n ds_write_b16 v1, v4\n" + wait_lds + "ds_read_u16 v3, v1\n" +
                 wait_lds + end);
}

TEST_CASE("values that were never written are reported where they matter", "[isa][checks]") {
  expect_report(setup + "v_add_u32_e32 v7, v6, v1\n global_load_dword v3, v7, s[8:9]\n" + wait_copy + end,
                ReportKind::register_uninitialised, "global_load_dword", "v_add_u32");
  expect_report("s_cmp_eq_u32 s20, 0\n s_cbranch_scc1 out\n out:\n" + end, ReportKind::register_uninitialised,
                "s_cbranch_scc1", "s_cmp_eq_u32");
  expect_report(setup + "global_store_dword v1, v9, s[8:9]\n" + end, ReportKind::register_uninitialised,
                "global_store_dword");
  // Functions save their callers' registers, written or not.
  expect_silence("scratch_store_dword off, v9, off\n" + end);
  // Written in the lanes that matter.
  expect_silence(setup + "s_mov_b64 exec, 0xff\n v_mov_b32_e32 v9, 1\n global_store_dword v1, v9, s[8:9]\n" +
                 end);
  expect_report(setup +
                    "s_mov_b64 exec, 0xff\n v_mov_b32_e32 v9, 1\n s_mov_b64 exec, -1\n"
                    "global_store_dword v1, v9, s[8:9]\n" +
                    end,
                ReportKind::register_uninitialised, "global_store_dword");
  // Selected from two values, one of which is undefined.
  expect_silence(setup +
                 "s_mov_b64 vcc, -1\n s_nop 4\n v_cndmask_b32_e32 v9, v20, v1, vcc\n"
                 "global_store_dword v1, v9, s[8:9]\n" +
                 end);
}

TEST_CASE("the matrix core wants all lanes", "[isa][checks]") {
  const std::string operands = "v_mov_b32_e32 v4, 0\n v_mov_b32_e32 v5, 0\n s_nop 4\n";
  const std::string mfma = "v_mfma_f32_32x32x8_f16 v[16:31], v[4:5], v[4:5], 0\n s_nop 15\n";
  expect_silence(operands + mfma + end);
  expect_report(operands + "s_mov_b64 exec, 0xffff\n s_nop 4\n" + mfma + end, ReportKind::exec_at_mfma,
                "v_mfma_f32_32x32x8_f16");
}

TEST_CASE("registers beyond the descriptor are reported", "[isa][checks]") {
  const LaunchShape small{.kernel = "small"};
  expect_silence("v_mov_b32_e32 v15, 1\n v_accvgpr_write_b32 a7, 1\n" + end, small);
  expect_report("v_mov_b32_e32 v24, 1\n" + end, ReportKind::register_out_of_range, "v_mov_b32", "", small);
  expect_silence("s_mov_b32 s47, 1\n" + end, small);
  expect_report("s_mov_b32 s48, 1\n" + end, ReportKind::register_out_of_range, "s_mov_b32", "", small);
  expect_report("v_accvgpr_write_b32 a8, 1\n" + end, ReportKind::register_out_of_range, "v_accvgpr_write_b32",
                "", small);
}

TEST_CASE("scratch beyond the lane's own is reported", "[isa][checks]") {
  const std::string store = "v_mov_b32_e32 v1, 7\n scratch_store_dword off, v1, off offset:";
  expect_silence(store + "252\n scratch_load_dword v2, off, off offset:252\n s_waitcnt vmcnt(0)\n" + end);
  expect_report(store + "256\n" + end, ReportKind::scratch_out_of_bounds, "scratch_store_dword");
}

TEST_CASE("a wave that cannot go on says why", "[isa][checks]") {
  expect_report("v_mov_b32_e32 v1, 0\n s_rfe_b64 s[2:3]\n" + end, ReportKind::unknown_instruction,
                "s_rfe_b64");
  const Report bytes = expect_report(".long 0xffffffff\n" + end, ReportKind::unknown_instruction, "");
  CHECK(bytes.disassembly == "bytes ff ff ff ff");
  expect_report("s_mov_b64 s[4:5], 0\n s_setpc_b64 s[4:5]\n" + end, ReportKind::invalid_pc, "s_setpc_b64");
  expect_report("s_trap 2\n" + end, ReportKind::trap, "s_trap 2");
  expect_silence("s_trap 3\n" + end);

  const TestKernel endless("again:\n s_branch again\n");
  Options options;
  options.instruction_budget = 1000;
  const Memory memory;
  CHECK_THAT(only(endless.run(memory, {}, {}, options), ReportKind::budget_exhausted).disassembly,
             Catch::StartsWith("s_branch"));
  // Without checks too.
  options.checks = Checks::none();
  options.completion = CompletionOrder::early;
  only(endless.run(memory, {}, {}, options), ReportKind::budget_exhausted);
}

TEST_CASE("a check that is off is silent", "[isa][checks]") {
  const TestKernel kernel(setup + read + wait_lds + end);
  Buffers buffers;
  Options options;
  CHECK(*emulator::check_by_name(options.checks, "uninitialised"));
  options.checks.uninitialised = false;
  CHECK(kernel.run(buffers.memory, buffers.arguments(), {}, options).ok());
  CHECK(emulator::check_by_name(options.checks, "no such check") == nullptr);
  CHECK(emulator::check_names().size() == 18);
}

TEST_CASE("one mistake is one report, with a count", "[isa][checks]") {
  const TestKernel kernel(setup + read + wait_lds + end);
  Buffers buffers;
  const LaunchResult result =
      kernel.run(buffers.memory, buffers.arguments(), {.waves = 2, .grid = {3, 1, 1}});
  const Report report = only(result, ReportKind::lds_uninitialised);
  CHECK(report.count == 3 * 2 * 64);
  const std::string json = emulator::to_json(result.reports);
  CHECK_THAT(json, Catch::Contains("\"kind\": \"lds_uninitialised\"") &&
                       Catch::Contains("\"kernel\": \"slot\"") && Catch::Contains("ds_read_b32 v3, v1"));
}

TEST_CASE("bank conflicts are counted by the groups in which LDS serves lanes", "[isa][checks]") {
  auto conflicts = [](const std::string &address, const std::string &access) {
    const TestKernel kernel(setup + address +
                            "v_mov_b32_e32 v4, 0\n v_mov_b32_e32 v5, 0\n v_mov_b32_e32 v6, 0\n"
                            "v_mov_b32_e32 v7, 0\n" +
                            access + wait_lds + end);
    Buffers buffers;
    const LaunchResult result = kernel.run(buffers.memory, buffers.arguments(), {.lds_bytes = 65536});
    INFO(all_text(result));
    CHECK(result.ok());
    return result.counters.lds_bank_conflicts;
  };
  CHECK(conflicts("v_mov_b32_e32 v3, v1\n", "ds_write_b32 v3, v4\n") == 0);
  // Stride of two dwords: two lanes on a bank in each group of 32.
  CHECK(conflicts("v_lshlrev_b32_e32 v3, 1, v1\n", "ds_write_b32 v3, v4\n") == 2);
  // Stride of 32 dwords: all lanes on one bank.
  CHECK(conflicts("v_lshlrev_b32_e32 v3, 5, v1\n", "ds_write_b32 v3, v4\n") == 2 * 31);
  // All lanes at one address: served at once.
  CHECK(conflicts("v_mov_b32_e32 v3, 0\n", "ds_write_b32 v3, v4\n") == 0);
  CHECK(conflicts("v_lshlrev_b32_e32 v3, 1, v1\n", "ds_write_b64 v3, v[4:5]\n") == 0);
  CHECK(conflicts("v_lshlrev_b32_e32 v3, 2, v1\n", "ds_write_b128 v3, v[4:7]\n") == 0);
  // Rows of 64 bytes: in each group of eight lanes pairs of lanes share the same four banks, four deep.
  CHECK(conflicts("v_lshlrev_b32_e32 v3, 4, v1\n", "ds_write_b128 v3, v[4:7]\n") == 8 * 3);
}

} // namespace sluice::test
