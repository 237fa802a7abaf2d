//===- check_levels_test.cpp - errors and warnings, how many are kept, and how they are set -------------===//
//
// The checks distinguish deliberate patterns of production code, which are warnings or not reported, from
// mistakes, which remain errors. No noisy rule hides another.
//
//===----------------------------------------------------------------------------------------------------===//
#include <catch2/catch.hpp>

#include <algorithm>
#include <limits>

#include "emulator/check/report_sink.h"
#include "emulator/machine/launch_setup.h"
#include "isa/kernel_fixture.h"

namespace sluice::test {

namespace {

/// s[8:9]: 64 KiB of memory; v0: the work-item; v1: that times 4; s5: the wave's number.
const std::string setup = R"(
  s_load_dwordx2 s[8:9], s[0:1], 0x0
  v_and_b32_e32 v0, 0x3ff, v0
  v_lshlrev_b32_e32 v1, 2, v0
  v_lshrrev_b32_e32 v2, 6, v0
  v_and_b32_e32 v7, 63, v0
  v_readfirstlane_b32 s5, v2
  v_lshlrev_b32_e32 v6, 2, v7
  s_waitcnt lgkmcnt(0)
)";
const std::string wait_lds = "s_waitcnt lgkmcnt(0)\n";
/// Lets the value of v8 decide EXEC, without changing it.
const std::string use = "v_cmpx_eq_u32_e32 vcc, v8, v8\n";
/// A read of LDS that nothing has written.
const std::string never_written = "ds_read_b32 v8, v1\n" + wait_lds + use;
const std::string end = "s_endpgm\n";
const LaunchShape two{.waves = 2};

LaunchResult run(const std::string &source, const LaunchShape &shape = {}, Options options = {}) {
  Memory memory;
  void *const data = memory.allocate(64 << 10);
  std::memset(data, 0, 64 << 10);
  return TestKernel(source).run(memory, {reinterpret_cast<uint64_t>(data)}, shape, options);
}

std::vector<Report> reports_of(const LaunchResult &result, ReportKind kind) {
  std::vector<Report> found;
  std::ranges::copy_if(result.reports, std::back_inserter(found),
                       [&](const Report &report) { return report.kind == kind; });
  return found;
}

Options hazards_only() {
  Options options;
  options.checks = Checks::none();
  options.checks.hazards = options.checks.hazards_compiler = options.checks.hazards_by_count = true;
  options.checks.hazards_waived = true;
  return options;
}

} // namespace

//===--- Hazards ----------------------------------------------------------------------------------------===//

TEST_CASE("the more serious of two hazards at one instruction is reported", "[isa][checks]") {
  // The half of v8 has the level `compiler` and comes first, the dot product in v9 is `required`.
  const std::string source =
      "v_mov_b32_e32 v4, 0\n v_mov_b32_e32 v5, 0\n s_nop 1\n v_dot2_f32_f16 v9, v4, v5, v4\n"
      "v_add_u32_sdwa v8, v4, v5 dst_sel:WORD_1 dst_unused:UNUSED_PAD src0_sel:DWORD src1_sel:DWORD\n"
      "v_lshlrev_b64 v[8:9], 1, v[4:5]\n";
  const Report report = only(run(source + end, {}, hazards_only()), ReportKind::hazard);
  CHECK(report.level == HazardLevel::required);
  CHECK_THAT(report.message, Catch::Contains("dot product") && Catch::Contains("CDNA3 ISA table 37, DL ops"));
  // With that level off the other one is reported.
  Options options = hazards_only();
  options.checks.hazards = false;
  const Report milder = only(run(source + end, {}, options), ReportKind::hazard);
  CHECK(milder.level == HazardLevel::compiler);
  CHECK_THAT(milder.message, Catch::Contains("v8: half of it written"));
}

TEST_CASE("a pair that is missed by count on one path is required on another", "[isa][checks]") {
  // The branch is not taken the first time, but the second.
  const std::string source = "v_mov_b32_e32 v4, 0\n s_mov_b32 s6, 0\n"
                             "again:\n v_exp_f32_e32 v3, v4\n s_cmp_eq_u32 s6, 1\n s_cbranch_scc1 early\n"
                             "early:\n v_add_f32_e32 v5, v3, v3\n";
  CHECK(run(source + end, {}, hazards_only()).ok()); // two instructions are enough
  const std::string both = "v_mov_b32_e32 v4, 0\n v_mov_b32_e32 v5, 0\n s_mov_b32 s6, 0\n s_nop 1\n"
                           "again:\n v_mfma_f32_32x32x8_f16 v[8:23], v[4:5], v[4:5], 0\n"
                           "s_cmp_eq_u32 s6, 1\n s_cbranch_scc1 early\n s_nop 0\n"
                           "early:\n v_add_f32_e32 v3, v8, v8\n s_nop 15\n s_nop 3\n s_add_u32 s6, s6, 1\n"
                           "s_cmp_lt_u32 s6, 2\n s_cbranch_scc1 again\n";
  const LaunchResult result = run(both + end, {}, hazards_only());
  REQUIRE(result.reports.size() == 2);
  CHECK(result.reports[0].level == HazardLevel::required);
  CHECK(result.reports[0].fails);
  CHECK(result.reports[1].level == HazardLevel::by_count);
  CHECK_FALSE(result.reports[1].fails);
  CHECK_THAT(result.reports[1].message, Catch::Contains("a taken branch or a barrier was in between"));
  const std::vector<Report> on_any_path = emulator::static_reports(TestKernel(both + end).program);
  REQUIRE(on_any_path.size() == 1);
  CHECK(on_any_path[0].level == HazardLevel::required);
}

TEST_CASE("a barrier takes time if waves have to meet", "[isa][checks]") {
  const std::string source = "v_mov_b32_e32 v4, 0\n v_mov_b32_e32 v5, 0\n s_nop 1\n"
                             "v_mfma_f32_32x32x8_f16 v[8:23], v[4:5], v[4:5], 0\n s_barrier\n"
                             "v_add_f32_e32 v3, v8, v8\n";
  CHECK(only(run(source + end, two, hazards_only()), ReportKind::hazard).level == HazardLevel::by_count);
  CHECK(only(run(source + end, {}, hazards_only()), ReportKind::hazard).level == HazardLevel::required);
}

//===--- Pairs of f32 -----------------------------------------------------------------------------------===//

TEST_CASE("op_sel and op_sel_hi choose the dwords of a pair of f32 that are checked", "[isa][checks]") {
  // v6 is written and v7 is not, or the other way round.
  const auto undefined = [](const std::string &written, const std::string &instruction) {
    const LaunchResult result = run(
        setup + "v_mov_b32_e32 v8, 1.0\n v_mov_b32_e32 v9, 1.0\n v_mov_b32_e32 " + written + ", 1.0\n" +
        instruction + "\n v_lshlrev_b32_e32 v10, 3, v0\n global_store_dwordx2 v10, v[4:5], s[8:9]\n" + end);
    return reports_of(result, ReportKind::register_uninitialised);
  };
  const std::string sources[] = {"v_pk_mul_f32 v[4:5], v[8:9], v[16:17]",
                                 "v_pk_add_f32 v[4:5], v[8:9], v[16:17]",
                                 "v_pk_fma_f32 v[4:5], v[8:9], v[16:17], v[8:9]"};
  for (const std::string &line : sources) {
    INFO(line);
    const std::string third = line.find("fma") != std::string::npos ? ",1" : "";
    const std::string low = " op_sel_hi:[1,0" + third + "]";
    const std::string high = " op_sel:[0,1" + std::string(third.empty() ? "" : ",0") + "]";
    CHECK(undefined("v16", line + low).empty());
    CHECK(undefined("v17", line + high).empty());
    // Both results come from registers that were never written: the low one is found first.
    REQUIRE(undefined("v17", line + low).size() == 1);
    CHECK_THAT(undefined("v17", line + low)[0].message,
               Catch::Contains("comes from v16, which was never written"));
    REQUIRE(undefined("v16", line + high).size() == 1);
    CHECK_THAT(undefined("v16", line + high)[0].message,
               Catch::Contains("comes from v17, which was never written"));
    // One dword for each: only the high result is undefined.
    REQUIRE(undefined("v16", line).size() == 1);
    CHECK(undefined("v16", line)[0].address == 5);
    REQUIRE(undefined("v17", line).size() == 1);
    CHECK(undefined("v17", line)[0].address == 4);
  }
  const std::string move = "v_pk_mov_b32 v[4:5], v[16:17], v[16:17] op_sel:";
  CHECK(undefined("v16", move + "[0,0]").empty());
  CHECK(undefined("v17", move + "[1,1]").empty());
  CHECK(undefined("v16", move + "[1,1]").size() == 1);
  CHECK(undefined("v16", move + "[0,1]").size() == 1);
  CHECK(undefined("v16", move + "[0,1]")[0].address == 5);
}

TEST_CASE("a pair of f32 converted from one dword is as defined as that", "[isa][checks]") {
  // Lane 0 of v20 is written, and lanes 0 to 3 of the result are stored.
  const auto stored = [](const std::string &instruction) {
    return run(setup + "s_mov_b64 exec, 1\n v_mov_b32_e32 v20, 1.0\n s_mov_b64 exec, -1\n s_nop 4\n" +
               instruction +
               "\n s_mov_b64 exec, 15\n v_lshlrev_b32_e32 v3, 3, v0\n"
               "global_store_dwordx2 v3, v[4:5], s[8:9]\n" +
               end);
  };
  for (const std::string name : {"v_cvt_pk_f32_fp8", "v_cvt_pk_f32_bf8"}) {
    const LaunchResult broadcast =
        stored(name + "_dpp v[4:5], v20 row_newbcast:0 row_mask:0xf bank_mask:0xf");
    INFO(all_text(broadcast));
    CHECK(broadcast.ok());
    CHECK_THAT(only(stored(name + "_e32 v[4:5], v20"), ReportKind::register_uninitialised).message,
               Catch::Contains("comes from v20, which was never written"));
  }
}

TEST_CASE("a dword that a pair of f32 leaves out may be in flight", "[isa][checks]") {
  const std::string head = setup + "v_mov_b32_e32 v16, 1.0\n v_mov_b32_e32 v17, 1.0\n";
  const auto reports = [&](const std::string &loaded, const std::string &selects) {
    return run(head + "global_load_dword " + loaded +
               ", v1, s[8:9]\n v_pk_mul_f32 v[4:5], v[16:17], v[16:17] " + selects +
               "\n s_waitcnt vmcnt(0)\n" + end);
  };
  CHECK(reports("v17", "op_sel_hi:[0,0]").ok());
  CHECK(reports("v16", "op_sel:[1,1]").ok());
  // One of the two sources is enough.
  only(reports("v17", "op_sel_hi:[1,0]"), ReportKind::pending_register);
  only(reports("v17", "op_sel:[1,1]"), ReportKind::pending_register);
  only(reports("v16", "op_sel_hi:[0,0]"), ReportKind::pending_register);
  only(reports("v16", "op_sel:[1,1] op_sel_hi:[0,1]"), ReportKind::pending_register);
}

TEST_CASE("a dword that a pair of f32 leaves out needs no wait states", "[isa][checks]") {
  const auto hazards = [](const std::string &selects) {
    return run("v_mov_b32_e32 v4, 0\n v_mov_b32_e32 v16, 0\n s_nop 1\n v_exp_f32_e32 v17, v4\n"
               "v_pk_mul_f32 v[6:7], v[16:17], v[16:17] " +
                   selects + "\n" + end,
               {}, hazards_only());
  };
  CHECK(hazards("op_sel_hi:[0,0]").ok());
  only(hazards("op_sel:[1,1]"), ReportKind::hazard);
  only(hazards(""), ReportKind::hazard);
  // Scalar pairs too.
  const auto scalars = [](const std::string &selects) {
    return run("v_mov_b32_e32 v4, 0\n v_mov_b32_e32 v5, 0\n s_mov_b32 s6, 0\n s_nop 1\n"
               "v_readfirstlane_b32 s7, v4\n v_pk_mul_f32 v[6:7], v[4:5], s[6:7] " +
                   selects + "\n" + end,
               {}, hazards_only());
  };
  CHECK(scalars("op_sel_hi:[1,0]").ok());
  only(scalars("op_sel:[0,1]"), ReportKind::hazard);
}

//===--- LDS --------------------------------------------------------------------------------------------===//

TEST_CASE("stores of equal values are distinguished from stores of different ones", "[isa][checks]") {
  const std::string same = setup + "ds_write_b32 v6, v7\n" + wait_lds;
  const LaunchResult equal = run(same + end, two);
  CHECK_FALSE(only(equal, ReportKind::lds_equal_stores).fails);
  CHECK(equal.failure() == nullptr);
  // One lane of 64 stores something else.
  const std::string all_but_one = setup +
                                  "v_cmp_eq_u32_e32 vcc, 127, v0\n s_nop 4\n"
                                  "v_addc_co_u32_e32 v8, vcc, 0, v7, vcc\n ds_write_b32 v6, v8\n" +
                                  wait_lds;
  const LaunchResult different = run(all_but_one + end, two);
  REQUIRE(reports_of(different, ReportKind::lds_race).size() == 1);
  CHECK(reports_of(different, ReportKind::lds_race)[0].lane == 63);
  CHECK(reports_of(different, ReportKind::lds_equal_stores)[0].count == 63);
  CHECK(different.failure() != nullptr);
  // Bytes, and halves of registers.
  for (const std::string width : {"ds_write_b8", "ds_write_b16", "ds_write_b16_d16_hi"}) {
    INFO(width);
    const std::string store = "v_mov_b32_e32 v8, 0x01020304\n " + width + " v6, v8\n" + wait_lds;
    only(run(setup + store + end, two), ReportKind::lds_equal_stores);
    const std::string per_wave =
        "v_mov_b32_e32 v8, v2\n v_lshl_or_b32 v8, v2, 16, v2\n " + width + " v6, v8\n";
    only(run(setup + per_wave + wait_lds + end, two), ReportKind::lds_race);
  }
  // Of 16 bytes the last four differ: the first twelve do not hide that.
  const std::string wide = "v_mov_b32_e32 v8, 1\n v_mov_b32_e32 v9, 2\n v_mov_b32_e32 v10, 3\n"
                           "v_lshlrev_b32_e32 v12, 4, v7\n v_mov_b32_e32 v11, ";
  only(run(setup + wide + "4\n ds_write_b128 v12, v[8:11]\n" + wait_lds + end, two),
       ReportKind::lds_equal_stores);
  only(run(setup + wide + "v2\n ds_write_b128 v12, v[8:11]\n" + wait_lds + end, two), ReportKind::lds_race);
}

TEST_CASE("a wave may read a value that it and others stored; other waves may not", "[isa][checks]") {
  const std::string same = setup + "ds_write_b32 v6, v7\n" + wait_lds;
  const std::string read = "ds_read_b32 v8, v6\n" + wait_lds;
  for (const emulator::WaveSchedule schedule :
       {emulator::WaveSchedule::greedy, emulator::WaveSchedule::round_robin,
        emulator::WaveSchedule::random}) {
    Options options;
    options.wave_schedule = schedule;
    const LaunchResult result = run(same + read + use + end, two, options);
    INFO(all_text(result));
    CHECK(result.failure() == nullptr);
    CHECK_FALSE(result.ok());
    // A third wave has not stored.
    const std::string third = setup + "s_cmp_eq_u32 s5, 2\n s_cbranch_scc1 reader\n ds_write_b32 v6, v7\n" +
                              wait_lds + "s_branch out\n reader:\n" + read + use + "out:\n" + end;
    CHECK(run(third, {.waves = 3}, options).failure() != nullptr);
  }
}

TEST_CASE("an equal store that may come before an older value was seen is a race", "[isa][checks]") {
  // Wave 0 runs `first`, wave 1 stores the same value at the end. v8: an older value.
  const auto after = [](const std::string &first, emulator::WaveSchedule schedule,
                        const std::string &before = "") {
    Options options;
    options.wave_schedule = schedule;
    return run(setup + "v_mov_b32_e32 v8, -1\n s_cmp_eq_u32 s5, 1\n s_cbranch_scc1 meet\n" +
                   "ds_write_b32 v6, v8\n" + wait_lds + before +
                   "meet:\n s_barrier\n s_cmp_eq_u32 s5, 1\n s_cbranch_scc1 second\n" + first +
                   "s_branch out\n second:\n s_nop 7\n s_nop 7\n s_nop 7\n s_nop 7\n ds_write_b32 v6, v7\n" +
                   "out:\n" + wait_lds + end,
               two, options);
  };
  const std::string store = "ds_write_b32 v6, v7\n";
  const std::string read = "ds_read_b32 v9, v6\n" + wait_lds;
  const std::string store_older = "ds_write_b32 v6, v8\n";
  for (const emulator::WaveSchedule schedule :
       {emulator::WaveSchedule::greedy, emulator::WaveSchedule::round_robin}) {
    for (const std::string &first :
         {read + store, store_older + store, store_older + wait_lds + store + wait_lds + store,
          store_older + "s_nop 0\n" + store + read, "ds_add_u32 v6, v7\n" + store}) {
      INFO(first);
      const LaunchResult race = after(first, schedule);
      REQUIRE(race.failure() != nullptr);
      CHECK(race.failure()->kind == ReportKind::lds_race);
    }
    // No wave sees a value other than the one that both store.
    for (const std::string &first : {store, store + store, store + read, store + read + store}) {
      INFO(first);
      const LaunchResult equal = after(first, schedule);
      INFO(all_text(equal));
      CHECK_FALSE(only(equal, ReportKind::lds_equal_stores).fails);
    }
    // A read before the barrier precedes the other wave's store.
    CHECK(after(store, schedule, "ds_read_b32 v9, v6\n").failure() == nullptr);
    CHECK(only(after("", schedule, read + store), ReportKind::lds_equal_stores).other->wave == 0);
  }
  // The lanes of one instruction do not overwrite each other's values.
  const LaunchResult one_place =
      run(setup + "v_mov_b32_e32 v8, 7\n v_mov_b32_e32 v6, 0\n ds_write_b32 v6, v8\n" + wait_lds + end, two);
  CHECK_FALSE(only(one_place, ReportKind::lds_equal_stores).fails);
}

TEST_CASE("a store after a read in flight is distinguished from an unordered one", "[isa][checks]") {
  // Each wave reads its own dwords and then stores to the other wave's.
  const std::string head = setup +
                           "v_xor_b32_e32 v3, 0x100, v1\n v_mov_b32_e32 v4, -1\n ds_write_b32 v1, v0\n" +
                           wait_lds + "ds_read_b32 v5, v1\n";
  const std::string store = "ds_write_b32 v3, v4\n" + wait_lds + end;
  const LaunchResult after_barrier = run(head + "s_barrier\n" + store, two);
  const Report report = only(after_barrier, ReportKind::lds_write_after_read);
  CHECK_FALSE(report.fails);
  CHECK_THAT(report.other->disassembly, Catch::StartsWith("ds_read_b32"));
  CHECK(run(head + wait_lds + "s_barrier\n" + store, two).ok());
  // Without a barrier either may come first, waited for or not.
  CHECK(run(head + store, two).failure() != nullptr);
  CHECK(run(head + wait_lds + store, two).failure() != nullptr);
  // A second read after the barrier, by the same wave and of the same bytes, is not ordered with the store.
  Options ready;
  ready.wave_schedule = emulator::WaveSchedule::round_robin;
  const LaunchResult again = run(head + "s_barrier\n ds_read_b32 v8, v1\n s_nop 7\n" + store, two, ready);
  CHECK(again.failure() != nullptr);
  CHECK(again.failure()->kind == ReportKind::lds_race);
}

//===--- How many are kept ------------------------------------------------------------------------------===//

TEST_CASE("one mistake is one report, with a count", "[isa][checks]") {
  const LaunchResult result = run(setup + never_written + end, {.waves = 2, .grid = {3, 1, 1}});
  CHECK(only(result, ReportKind::lds_uninitialised).count == 3 * 2);
  CHECK_THAT(emulator::to_json(result.reports), Catch::Contains("\"kind\": \"lds_uninitialised\"") &&
                                                    Catch::Contains("\"kernel\": \"slot\"") &&
                                                    Catch::Contains("ds_read_b32 v8, v1"));
}

TEST_CASE("a launch stops when one mistake goes on and on", "[isa][checks]") {
  Options options;
  options.instruction_budget = 1 << 24; // so that a launch that did not stop would end with another report
  const LaunchResult result = run(setup +
                                      "s_add_u32 s8, s8, 0xff04\n s_addc_u32 s9, s9, 0\n"
                                      "again:\n global_load_dword v3, v1, s[8:9]\n"
                                      "s_waitcnt vmcnt(0)\n s_branch again\n" +
                                      end,
                                  {}, options);
  CHECK(only(result, ReportKind::global_out_of_bounds).count >= 1 << 16);
}

TEST_CASE("a launch stops at its first report if asked to", "[isa][checks]") {
  Options options;
  for (bool stop : {true, false}) {
    options.stop_at_report = stop;
    const LaunchResult result = run(setup + never_written + "s_barrier\n" + never_written + end, {}, options);
    CHECK(result.reports.size() == (stop ? 1 : 2));
  }
}

TEST_CASE("no rule's places leave out another rule's", "[isa][checks]") {
  using emulator::Finding;
  using emulator::ReportSink;
  using emulator::Rule;
  const auto find = [](ReportSink &sink, const Rule &rule, uint32_t op) {
    if (!sink.is_new(rule, op, std::nullopt)) return;
    Finding finding;
    finding.rule = rule;
    finding.op = op;
    sink.add(std::move(finding));
  };
  ReportSink sink(2, false);
  const Rule noisy{.kind = ReportKind::hazard, .level = HazardLevel::compiler, .hazard = 1, .fails = false};
  const Rule other{.kind = ReportKind::hazard, .level = HazardLevel::compiler, .hazard = 2, .fails = false};
  const Rule race{.kind = ReportKind::lds_race};
  for (uint32_t i = 0; i < 30; ++i)
    find(sink, noisy, i % 10);
  find(sink, other, 3);
  find(sink, race, 3);
  CHECK(sink.dropped() == 24);
  const std::vector<ReportSink::Entry> kept = sink.take();
  REQUIRE(kept.size() == 4);
  CHECK(std::ranges::count(kept, 3u, &ReportSink::Entry::count) == 2); // the noisy ones, with their counts
  CHECK(std::ranges::count(kept, 1u, &ReportSink::Entry::count) == 2);

  // Warnings neither make a launch give up nor end one that is to stop at its first report.
  ReportSink patient(2, true);
  for (uint32_t i = 0; i < 1 << 17; ++i)
    find(patient, noisy, 0);
  CHECK_FALSE(patient.gave_up());
  find(patient, race, 1);
  CHECK(patient.gave_up());
  find(patient, race, 2); // before it ends
  CHECK(patient.take().size() == 2);
  ReportSink strict(2, false);
  for (uint32_t i = 0; i < (1 << 16) - 1; ++i)
    find(strict, race, 0);
  CHECK_FALSE(strict.gave_up());
  find(strict, race, 0);
  CHECK(strict.gave_up());
}

TEST_CASE("a kernel full of warnings runs to its end and shows its one error", "[isa][checks]") {
  std::string source = setup + "v_mov_b32_e32 v4, 0\n v_mov_b32_e32 v5, 0\n s_mov_b32 s6, 0\n again:\n";
  for (int i = 0; i < 8; ++i)
    source += "v_cmp_eq_u32_e32 vcc, 0, v4\n v_cndmask_b32_e32 v3, v4, v5, vcc\n";
  source += "s_add_u32 s6, s6, 1\n s_cmp_lt_u32 s6, 0x12000\n s_cbranch_scc1 again\n"
            "global_store_dword v1, v20, s[8:9]\n" +
            end;
  Options options;
  options.max_reports = 4;
  options.checks.hazards_waived = true;
  const LaunchResult result = run(source, {}, options);
  REQUIRE(reports_of(result, ReportKind::hazard).size() == 4);
  CHECK(reports_of(result, ReportKind::hazard)[0].count == 0x12000);
  CHECK(result.reports_dropped == 4 * 0x12000);
  REQUIRE(result.failure() != nullptr);
  CHECK(result.failure()->kind == ReportKind::register_uninitialised);
  CHECK(result.counters.waves == 1);
  CHECK(result.counters.wave_instructions > 0x12000 * 19);
}

//===--- Settings ---------------------------------------------------------------------------------------===//

TEST_CASE("a check is set by its name, and off it is silent", "[isa][checks]") {
  CHECK(emulator::check_names().size() == 26);
  Options options;
  CHECK(emulator::check_by_name(options.checks, "no such check") == nullptr);
  CHECK(*emulator::check_by_name(options.checks, "uninitialised"));
  only(run(setup + never_written + end, {}, options), ReportKind::lds_uninitialised);
  *emulator::check_by_name(options.checks, "uninitialised") = false;
  CHECK_FALSE(options.checks.uninitialised);
  CHECK(run(setup + never_written + end, {}, options).ok());
}

TEST_CASE("instructions are not limited by default", "[isa][checks]") {
  const TestKernel kernel(end);
  const Memory memory;
  const std::array<uint64_t, 8> arguments{};
  const auto limit = [&](uint64_t budget) {
    Options options;
    if (budget != 0) options.instruction_budget = budget;
    emulator::LaunchSetup setup(kernel.program, "slot", {1, 1, 1}, {64, 1, 1}, 0,
                                std::as_bytes(std::span(arguments)), memory, options);
    return setup.state().instruction_budget;
  };
  CHECK(limit(0) == std::numeric_limits<uint64_t>::max());
  CHECK(limit(1000) == 1000);
}

TEST_CASE("lists of checks and warnings are read, and refused by name", "[isa][checks]") {
  using emulator::parse_checks;
  using emulator::parse_warnings;
  CHECK(parse_checks("all") == Checks::all());
  CHECK(parse_checks("none") == Checks::none());
  CHECK(parse_checks("hazards_by_count,pending").hazards_by_count);
  CHECK_FALSE(parse_checks("hazards_by_count,pending").hazards);
  CHECK_THROWS_WITH(
      parse_checks("pending,typo"),
      Catch::StartsWith("unknown check 'typo'; it must be all, none or a list of pending, lds_races"));
  CHECK_THROWS_WITH(parse_checks(""), Catch::StartsWith("unknown check ''"));
  CHECK(parse_warnings("default") == Checks::warned_of());
  CHECK_FALSE(parse_warnings("all").global_bounds);
  CHECK(parse_warnings("all").lds_races);
  CHECK_FALSE(parse_warnings("none").lds_equal_stores);
  CHECK(parse_warnings("uninitialised").uninitialised);
  CHECK_FALSE(parse_warnings("uninitialised").hazards_compiler);
  CHECK(emulator::report_fails(ReportKind::global_freed, HazardLevel::required, Checks::all()));
  CHECK_FALSE(emulator::report_fails(ReportKind::global_race, HazardLevel::required, Checks::all()));
  CHECK_THROWS_WITH(parse_warnings("pending,global_bounds"),
                    Catch::Contains("global_bounds cannot be a warning"));
  CHECK_THROWS_WITH(parse_warnings("typo"), Catch::Contains("it must be default, all, none or a list of"));
}

TEST_CASE("text and JSON show the severity of a report and the level of a hazard", "[isa][checks]") {
  const LaunchResult result =
      run("v_mov_b32_e32 v4, 0\n v_cmp_eq_u32_e32 vcc, 0, v4\n"
          "v_cndmask_b32_e32 v2, v4, v4, vcc\n v_exp_f32_e32 v3, v4\n v_mov_b32_e32 v5, v3\n" +
              end,
          {}, hazards_only());
  REQUIRE(result.reports.size() == 2);
  const std::string json = emulator::to_json(result.reports);
  CHECK_THAT(json, Catch::Contains("\"severity\": \"error\", \"level\": \"required\"") &&
                       Catch::Contains("\"severity\": \"warning\", \"level\": \"waived\""));
  CHECK_THAT(all_text(result), Catch::Contains(": hazard (required): v3") &&
                                   Catch::Contains(": warning: hazard (waived): vcc"));
}

} // namespace sluice::test
