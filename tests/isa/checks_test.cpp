//===- checks_test.cpp - programs with one mistake, and their twins without it --------------------------===//
//
// Each mistake must be reported at the right instruction, with its disassembly; the twin must stay silent,
// under every order of completion.
//
//===----------------------------------------------------------------------------------------------------===//
#include <catch2/catch.hpp>

#include "isa/kernel_fixture.h"

namespace sluice::test {

namespace {

constexpr CompletionOrder orders[] = {CompletionOrder::late, CompletionOrder::early, CompletionOrder::random};

struct Buffers {
  Memory memory;
  uint32_t *data = static_cast<uint32_t *>(memory.allocate(64 << 10));
  Buffers() {
    for (uint32_t i = 0; i < (64 << 10) / 4; ++i)
      data[i] = i;
  }
  std::array<uint64_t, 8> arguments() const { return {reinterpret_cast<uint64_t>(data)}; }
};

/// Runs under every order of completion and expects the one report, at the instruction whose text starts so.
Report expect_report(const std::string &source, ReportKind kind, std::string_view instruction,
                     std::string_view other = "", LaunchShape shape = {}) {
  const TestKernel kernel(source);
  Report last;
  for (CompletionOrder order : orders) {
    Buffers buffers;
    Options options;
    options.completion = order;
    const LaunchResult result = kernel.run(buffers.memory, buffers.arguments(), shape, options);
    INFO(source);
    last = only(result, kind);
    CHECK(last.kernel == shape.kernel);
    CHECK_THAT(last.disassembly, Catch::StartsWith(std::string(instruction)));
    // The PC is that of the instruction named.
    const std::string listing = kernel.program.disassemble(shape.kernel);
    char line[64];
    std::snprintf(line, sizeof line, "%06llx: ", static_cast<unsigned long long>(last.pc));
    CHECK(listing.find(line + last.disassembly) != std::string::npos);
    CHECK(last.other.has_value() == !other.empty());
    if (last.other) CHECK_THAT(last.other->disassembly, Catch::StartsWith(std::string(other)));
  }
  return last;
}

void expect_silence(const std::string &source, LaunchShape shape = {}) {
  const TestKernel kernel(source);
  for (CompletionOrder order : orders) {
    Buffers buffers;
    Options options;
    options.completion = order;
    const LaunchResult result = kernel.run(buffers.memory, buffers.arguments(), shape, options);
    INFO(source << all_text(result));
    CHECK(result.ok());
  }
}

// s[8:11]: a buffer resource over the data; v1: the work-item times 4; s5: the wave's number.
const std::string setup = R"(
  s_load_dwordx2 s[8:9], s[0:1], 0x0
  s_mov_b32 s10, 0x10000
  s_mov_b32 s11, 0x00027000
  v_and_b32_e32 v0, 0x3ff, v0
  v_lshlrev_b32_e32 v1, 2, v0
  v_lshrrev_b32_e32 v2, 6, v0
  s_mov_b32 m0, 0
  v_readfirstlane_b32 s5, v2
  s_waitcnt lgkmcnt(0)
)";
const std::string end = "s_endpgm\n";
const std::string copy = "buffer_load_dword v1, s[8:11], 0 offen lds\n";
const std::string read = "ds_read_b32 v3, v1\n";
const std::string wait_lds = "s_waitcnt lgkmcnt(0)\n";
const std::string wait_copy = "s_waitcnt vmcnt(0)\n";

} // namespace

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
  // Each wave reads the other's part, and after the barrier writes its own anew.
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
  // Both waves read what both copied (same M0): wave 1's copy is in conflict with wave 0's, so only wave 0
  // copies.
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
  // A second load of the same kind into the register is in order behind the first.
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
  // A load behind a flat store is counted by vmcnt alone.
  expect_silence(head + "flat_store_dword v[10:11], v1\n global_load_dword v3, v1, s[8:9] offset:1024\n" +
                 wait_copy + use + wait_lds + end);
  // A count tells the load from what came later.
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
  // With the check off the value itself shows when the load arrives.
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
  // Functions save what their callers hold, whatever it is.
  expect_silence("scratch_store_dword off, v9, off\n" + end);
  // Written in the lanes that matter.
  expect_silence(setup + "s_mov_b64 exec, 0xff\n v_mov_b32_e32 v9, 1\n global_store_dword v1, v9, s[8:9]\n" +
                 end);
  expect_report(setup +
                    "s_mov_b64 exec, 0xff\n v_mov_b32_e32 v9, 1\n s_mov_b64 exec, -1\n"
                    "global_store_dword v1, v9, s[8:9]\n" +
                    end,
                ReportKind::register_uninitialised, "global_store_dword");
  // Chosen from two, of which one is undefined.
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

TEST_CASE("wait states that the hardware does not enforce", "[isa][checks]") {
  const std::string zeros =
      "s_load_dwordx2 s[8:9], s[0:1], 0x0\n v_mov_b32_e32 v1, 0\n v_mov_b32_e32 v4, 0\n"
      "v_mov_b32_e32 v5, 0\n v_mov_b32_e32 v6, 0\n v_mov_b32_e32 v7, 0\n s_waitcnt lgkmcnt(0)\n"
      "v_mov_b32_e32 v12, 0x44\n v_mov_b32_e32 v13, s9\n s_nop 7\n";
  struct Pair {
    std::string first;
    std::string second;
    uint32_t needed;
    HazardLevel level = HazardLevel::required;
  };
  constexpr HazardLevel compiler = HazardLevel::compiler;
  const std::string long_mfma = "v_mfma_f32_32x32x8_f16 v[16:31], v[4:5], v[6:7], 0\n";
  const std::string short_mfma = "v_mfma_f32_16x16x16_f16 v[16:19], v[4:5], v[6:7], 0\n";
  const std::string single_mfma = "v_mfma_f32_16x16x4_f32 v[16:19], v4, v6, 0\n";
  const std::string tiny_mfma = "v_mfma_f32_4x4x4_16b_f16 v[16:19], v[4:5], v[6:7], 0\n";
  const std::string double_mfma = "v_mfma_f64_16x16x4_f64 v[16:23], v[4:5], v[6:7], 0\n";
  const std::string sparse_mfma = "v_smfmac_f32_16x16x32_f16 v[16:19], v[4:5], v[8:11], v12\n";
  const Pair pairs[] = {
      {long_mfma, "v_mov_b32_e32 v2, v31\n", 11},
      {short_mfma, "v_mov_b32_e32 v2, v16\n", 7},
      {single_mfma, "v_mov_b32_e32 v2, v16\n", 10},
      {tiny_mfma, "v_mov_b32_e32 v2, v16\n", 5},
      {short_mfma, "ds_write_b32 v1, v19\n s_waitcnt lgkmcnt(0)\n", 7},
      {short_mfma, "v_mov_b32_e32 v17, 0\n", 7},
      {short_mfma, "v_mfma_f32_16x16x16_f16 v[20:23], v[16:17], v[6:7], 0\n", 7},
      {tiny_mfma, "v_mfma_f32_4x4x4_16b_f16 v[16:19], v[4:5], v[6:7], v[16:19]\n", 2},
      {short_mfma, "v_mfma_f32_32x32x8_f16 v[32:47], v[4:5], v[6:7], v[14:29]\n", 5},
      {"v_mfma_f32_16x16x16_f16 v[20:23], v[4:5], v[6:7], v[16:19]\n", "v_mov_b32_e32 v17, 0\n", 3},
      {double_mfma, "v_mov_b32_e32 v2, v17\n", 11},
      {double_mfma, "ds_write_b32 v1, v17\n s_waitcnt lgkmcnt(0)\n", 18},
      {double_mfma, "v_fma_f64 v[2:3], v[4:5], v[4:5], v[6:7]\n", 2, compiler},
      {sparse_mfma, "v_mov_b32_e32 v2, v17\n", 7},
      {"v_mov_b32_e32 v12, 0x44\n", sparse_mfma, 2},
      {"v_mfma_i32_16x16x32_i8 v[20:23], v[4:5], v[6:7], v[16:19]\n",
       "global_load_dword v16, v1, s[8:9]\n s_waitcnt vmcnt(0)\n", 3, compiler},
      {short_mfma, "global_load_dword v16, v1, s[8:9]\n s_waitcnt vmcnt(0)\n", 7, compiler},
      {short_mfma, "ds_read_b32 v19, v1\n s_waitcnt lgkmcnt(0)\n", 7, compiler},
      {"v_mov_b32_e32 v5, 1.0\n", short_mfma, 2},
      {"v_cmpx_eq_u32_e32 vcc, 0, v1\n", short_mfma, 4},
      {"v_exp_f32_e32 v2, v4\n", "v_add_f32_e32 v3, v2, v2\n", 1},
      {"v_cmp_eq_u32_e32 vcc, 0, v1\n", "v_cndmask_b32_e32 v2, v4, v5, vcc\n", 2, compiler},
      {"v_cmp_eq_u32_e64 s[6:7], 0, v1\n", "v_cndmask_b32_e64 v2, v4, v5, s[6:7]\n", 2, compiler},
      {"v_cmp_eq_u32_e64 s[6:7], 0, v1\n", "v_mov_b32_e32 v2, s7\n", 2},
      {"v_cmp_eq_u32_e32 vcc, 0, v1\n", "v_addc_co_u32_e32 v2, vcc, v4, v5, vcc\n", 2, compiler},
      {"v_cmp_eq_u32_e32 vcc, 0, v1\n", "v_subb_co_u32_e32 v2, vcc, v4, v5, vcc\n", 2, compiler},
      {"v_cmp_eq_u32_e32 vcc, 0, v1\n", "v_mov_b32_e32 v2, vcc_lo\n", 2},
      {"v_cmpx_eq_u32_e32 vcc, 0, v1\n", "v_mov_b32_e32 v2, exec_lo\n", 2},
      {"v_cmp_eq_u32_e32 vcc, 0, v1\n", "v_div_fmas_f32 v2, v4, v5, v6\n", 4},
      {"v_readfirstlane_b32 s6, v1\n", "v_readlane_b32 s7, v1, s6\n", 4},
      {"v_mov_b32_e32 v2, 0\n", "v_readfirstlane_b32 s6, v2\n", 1},
      {"v_readfirstlane_b32 s6, v1\n", "v_writelane_b32 v2, s6, 0\n", 2},
      {"v_readfirstlane_b32 s6, v1\n", "v_writelane_b32 v2, 1, s6\n", 4},
      {"v_mov_b32_e32 v2, 0\n", "v_mov_b32_dpp v3, v2 row_mirror row_mask:0xf bank_mask:0xf\n", 2},
      {"v_cmpx_eq_u32_e32 vcc, 0, v1\n", "v_mov_b32_dpp v3, v1 row_mirror row_mask:0xf bank_mask:0xf\n", 5},
      {"v_readfirstlane_b32 s9, v13\n", "global_load_dword v2, v1, s[8:9]\n s_waitcnt vmcnt(0)\n", 5},
      {"v_add_u32_sdwa v2, v4, v5 dst_sel:WORD_1 dst_unused:UNUSED_PAD src0_sel:DWORD src1_sel:DWORD\n",
       "v_mov_b32_e32 v3, v2\n", 1},
      // The half lands late for what overwrites it too.
      {"v_add_u32_sdwa v2, v4, v5 dst_sel:WORD_1 dst_unused:UNUSED_PAD src0_sel:DWORD src1_sel:DWORD\n",
       "v_mov_b32_e32 v2, 0\n", 1, compiler},
      {"v_mad_u16 v2, v4, v5, v6 op_sel:[0,0,0,1]\n", "v_mov_b32_e32 v3, v2\n", 1},
      {"v_cvt_pk_fp8_f32 v2, v4, v5 op_sel:[0,0,1]\n", "v_cvt_f32_fp8_sdwa v3, v2 src0_sel:BYTE_2\n", 1},
      {"v_cvt_sr_bf8_f32 v2, v4, v5 op_sel:[0,0,1,0]\n", "v_cvt_sr_bf8_f32 v2, v4, v5\n", 1},
      {"v_rcp_f16_e32 v2, v4\n", "v_add_f16_e32 v3, v2, v2\n", 1},
      {"v_cos_f16_e32 v2, v4\n", "v_add_f16_e32 v3, v2, v2\n", 1},
      {"global_store_dwordx4 v1, v[4:7], s[8:9]\n", "v_mov_b32_e32 v5, 0\n", 2},
      {"global_store_dwordx3 v1, v[4:6], s[8:9]\n", "v_mov_b32_e32 v6, 0\n", 2},
      {"s_movk_i32 m0, 0x1\n", "s_movrels_b32 s6, s7\n", 1},
      {"s_movk_i32 m0, 0x1\n", "s_movreld_b64 s[6:7], s[10:11]\n", 1},
      {"s_movk_i32 m0, 0x1\n", "s_ttracedata\n", 1, compiler},
      {"s_movk_i32 m0, 0x1\n", "s_sendmsg sendmsg(MSG_INTERRUPT)\n", 1},
      {"s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 2), 0\n", "s_getreg_b32 s6, hwreg(HW_REG_MODE)\n", 2},
      {"s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 2), 0\n", "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 2, 2), 0\n",
       2},
  };
  for (const Pair &pair : pairs) {
    auto with_states = [&](uint32_t states) {
      std::string nops;
      for (; states > 16; states -= 16)
        nops += "s_nop 15\n";
      if (states > 0) nops += "s_nop " + std::to_string(states - 1) + "\n";
      return TestKernel(zeros + pair.first + nops + pair.second + end);
    };
    const TestKernel too_early = with_states(pair.needed - 1);
    const TestKernel in_time = with_states(pair.needed);
    INFO(pair.first << pair.second);
    Buffers buffers;
    Options options;
    options.checks = Checks::none();
    options.checks.hazards = options.checks.hazards_compiler = true;
    const Report report =
        only(too_early.run(buffers.memory, buffers.arguments(), {}, options), ReportKind::hazard);
    CHECK_THAT(report.message, Catch::Contains(std::to_string(pair.needed) + " are needed"));
    CHECK(report.level == pair.level);
    CHECK(report.fails == (pair.level == HazardLevel::required));
    CHECK(pair.second.starts_with(report.disassembly));
    CHECK(pair.first.starts_with(report.other->disassembly));
    const LaunchResult silent = in_time.run(buffers.memory, buffers.arguments(), {}, options);
    INFO(all_text(silent));
    CHECK(silent.ok());
  }
  // Accumulating into the same registers needs nothing in between.
  expect_silence(zeros + long_mfma + "v_mfma_f32_32x32x8_f16 v[16:31], v[4:5], v[6:7], v[16:31]\n" + end);
  // A lane of a register that was just written may be written at once.
  expect_silence(zeros + "v_writelane_b32 v2, s4, 1\n v_writelane_b32 v2, s4, 2\n" + end);
  // Neither does a store of 64 bits, one with a scalar offset, one that reads half a result, or a conversion
  // to the low half.
  expect_silence(zeros + "global_store_dwordx2 v1, v[4:5], s[8:9]\n v_mov_b32_e32 v5, 0\n" + end);
  expect_silence(
      setup +
      "v_mov_b32_e32 v4, 0\n v_mov_b32_e32 v5, 0\n v_mov_b32_e32 v6, 0\n v_mov_b32_e32 v7, 0\n"
      "s_mov_b32 s14, 0\n buffer_store_dwordx4 v[4:7], v1, s[8:11], s14 offen\n v_mov_b32_e32 v5, 0\n" +
      end);
  expect_silence(zeros + "v_cvt_pk_fp8_f32 v4, v5, v6 op_sel:[0,0,1]\n global_store_dword v1, v4, s[8:9]\n" +
                 end);
  expect_silence(zeros + "v_cvt_pk_fp8_f32 v4, v5, v6\n v_cvt_f32_fp8_e32 v5, v4\n" + end);
  expect_silence("s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 2), 0\n s_getreg_b32 s6, hwreg(HW_REG_XCC_ID)\n" +
                 end);
  // M0 for a copy.
  const std::string change_m0 = setup + "s_movk_i32 m0, 0x10\n";
  expect_report(change_m0 + copy + wait_copy + end, ReportKind::hazard, "buffer_load_dword", "s_movk_i32");
  expect_silence(change_m0 + "s_nop 0\n" + copy + wait_copy + end);
}

TEST_CASE("wait states are missed on paths that no wave takes", "[isa][checks]") {
  // The branch is never taken, and its target comes too early for the matrix core's result.
  const std::string source = "v_mov_b32_e32 v4, 0\n v_mov_b32_e32 v5, 0\n s_nop 1\n"
                             "v_mfma_f32_32x32x8_f16 v[8:23], v[4:5], v[4:5], 0\n s_cmp_eq_u32 0, 1\n"
                             "s_cbranch_scc1 early\n s_nop 15\n early:\n v_add_f32_e32 v3, v8, v8\n" +
                             end;
  expect_silence(source);
  const std::vector<Report> found = emulator::static_reports(TestKernel(source).program);
  REQUIRE(found.size() == 1);
  CHECK_THAT(found[0].disassembly, Catch::StartsWith("v_add_f32"));
  CHECK_THAT(found[0].other->disassembly, Catch::StartsWith("v_mfma"));
  CHECK_THAT(found[0].message, Catch::Contains("written by the matrix core 2 wait states before, but 11"));
  // What lies behind a jump does not follow it.
  const std::string jump = "v_mov_b32_e32 v4, 0\n v_mov_b32_e32 v5, 0\n s_nop 1\n"
                           "v_mfma_f32_32x32x8_f16 v[8:23], v[4:5], v[4:5], 0\n s_branch over\n"
                           "v_add_f32_e32 v3, v8, v8\n over:\n s_nop 15\n";
  CHECK(emulator::static_reports(TestKernel(jump + end).program).empty());
  // Round a loop: the end of the body before its start.
  const std::string loop = "s_mov_b32 s6, 1\n v_mov_b32_e32 v3, 0\n again:\n v_add_f32_e32 v4, v3, v3\n"
                           "s_sub_u32 s6, s6, 1\n s_cmp_lg_u32 s6, 0\n v_exp_f32_e32 v3, v4\n";
  CHECK(emulator::static_reports(TestKernel(loop + "s_cbranch_scc1 again\n" + end).program).empty());
  CHECK(emulator::static_reports(TestKernel(loop + "v_add_f32_e32 v5, v3, v3\n" + end).program).size() == 1);
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
  CHECK(emulator::check_names().size() == 16);
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
  // Rows of 64 bytes: in each group of eight lanes two and two meet on the same four banks, four deep.
  CHECK(conflicts("v_lshlrev_b32_e32 v3, 4, v1\n", "ds_write_b128 v3, v[4:7]\n") == 8 * 3);
}

} // namespace sluice::test
