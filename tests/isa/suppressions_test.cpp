//===- suppressions_test.cpp - rules for reports that are not wanted, and which errors are tolerated ----===//
#include <catch2/catch.hpp>

#include "emulator/check/report_sink.h"
#include "emulator/check/suppressions.h"

namespace sluice::test {

using namespace sluice::emulator;

namespace {

Report race() {
  Report report;
  report.kind = ReportKind::lds_race;
  report.kernel = "_Z4sortPi";
  report.pc = 0x1900;
  report.disassembly = "ds_read_b32 v1, v0";
  report.source = "/src/merge.h:12, inlined at /src/sort.hip:40";
  return report;
}

uint32_t line_for(const char *rules, const Report &report) {
  return Suppressions(rules).line_for(report);
}

} // namespace

TEST_CASE("patterns describe whole texts", "[checks]") {
  CHECK(matches_pattern("*", ""));
  CHECK(matches_pattern("", ""));
  CHECK_FALSE(matches_pattern("", "a"));
  CHECK(matches_pattern("a*c?", "abbcd"));
  CHECK(matches_pattern("*b*b*", "abcb"));
  CHECK_FALSE(matches_pattern("a*c", "abcd"));
  CHECK_FALSE(matches_pattern("?", ""));
  CHECK(matches_pattern("*.hip:4?", "/src/sort.hip:40"));
}

TEST_CASE("a rule names a kernel, a kind and a place", "[checks]") {
  CHECK(line_for("* * *\n", race()) == 1);
  CHECK(line_for("# comment\n\n  _Z4sort*\tlds_race\t*merge.h:12  ", race()) == 3);
  CHECK(line_for("* lds_race */sort.hip:40", race()) == 1); // what it was inlined into
  CHECK(line_for("* lds_race 0x1900", race()) == 1);
  CHECK(line_for("* global_race *\n* lds_race *:41\n_Z5other lds_race *\n* lds_race *\n", race()) == 4);
  CHECK(line_for("* lds_race *inlined*", race()) == 0);
  Report copies; // of streams: it has no place
  copies.kind = ReportKind::stream_race;
  copies.kernel = "copy of 16 bytes";
  CHECK(line_for("copy* stream_race *", copies) == 1);
  CHECK(line_for("copy* stream_race ?*", copies) == 0);
}

TEST_CASE("bad rules are refused by line", "[checks]") {
  CHECK_THROWS_WITH(Suppressions(""), "has no rules");
  CHECK_THROWS_WITH(Suppressions("#\n"), "has no rules");
  CHECK_THROWS_WITH(Suppressions("* * *\n* lds_race"), Catch::StartsWith("line 2: has 2 words"));
  CHECK_THROWS_WITH(Suppressions("* * * *"), Catch::StartsWith("line 1: has 4 words"));
  CHECK_THROWS_WITH(Suppressions("* lds_rice *"), "line 1: 'lds_rice' describes no kind of report");
  CHECK_THROWS_WITH(Suppressions("* trap *"),
                    "line 1: 'trap' describes no kind of report that can be suppressed");
}

TEST_CASE("the end of a launch cannot be suppressed", "[checks]") {
  Report report = race();
  for (const ReportKind kind : {ReportKind::trap, ReportKind::barrier_deadlock, ReportKind::not_emulated,
                                ReportKind::budget_exhausted, ReportKind::launch_refused}) {
    report.kind = kind;
    CHECK(line_for("* * *", report) == 0);
  }
  report.kind = ReportKind::misaligned;
  CHECK(line_for("* * *", report) == 1);
}

TEST_CASE("tolerated errors do not fail a launch", "[checks]") {
  CheckOptions options;
  const auto fails = [&](ReportKind kind) {
    return consequence_of(kind, HazardLevel::required, options).fails;
  };
  const auto goes_on = [&](ReportKind kind) {
    return consequence_of(kind, HazardLevel::required, options).goes_on;
  };
  CHECK(fails(ReportKind::lds_race));
  CHECK_FALSE(goes_on(ReportKind::lds_race));
  options.tolerated = parse_tolerated("findings");
  for (const ReportKind kind : {ReportKind::lds_race, ReportKind::global_race, ReportKind::stale_cache,
                                ReportKind::stream_race, ReportKind::memory_uninitialised,
                                ReportKind::register_uninitialised, ReportKind::lds_uninitialised}) {
    CHECK_FALSE(fails(kind));
    CHECK(goes_on(kind));
  }
  for (const ReportKind kind :
       {ReportKind::global_out_of_bounds, ReportKind::lds_out_of_bounds, ReportKind::trap,
        ReportKind::pending_register, ReportKind::hazard, ReportKind::not_emulated}) {
    CHECK(fails(kind));
    CHECK_FALSE(goes_on(kind));
  }
  // A warning stays one.
  CHECK_FALSE(fails(ReportKind::lds_equal_stores));
  CHECK_FALSE(goes_on(ReportKind::lds_equal_stores));
  options.warnings = parse_warnings("all");
  CHECK_FALSE(goes_on(ReportKind::lds_race));
  CHECK(parse_tolerated("none") == Checks::none());
  CHECK(parse_tolerated("pending").pending);
  CHECK_FALSE(parse_tolerated("all").global_bounds);
  CHECK_THROWS_WITH(parse_tolerated("global_bounds"), Catch::Contains("cannot be tolerated"));
  CHECK_THROWS_WITH(parse_tolerated("typo"), Catch::Contains("it must be findings, all, none or a list of"));
}

TEST_CASE("a missing service ends the launch with one report, a suppressed error does not", "[checks]") {
  const auto finding = [](ReportKind kind, uint32_t op) {
    Finding result;
    result.rule.kind = kind;
    result.op = op;
    return result;
  };
  ReportSink sink(8, false);
  sink.add(finding(ReportKind::not_emulated, 1));
  CHECK(sink.gave_up());
  CHECK_FALSE(sink.is_new({.kind = ReportKind::global_out_of_bounds}, 2, std::nullopt));
  sink.add(finding(ReportKind::global_out_of_bounds, 2));
  CHECK(sink.take().size() == 1);

  ReportSink suppressing(8, true, [](const Finding &found) { return found.op == 1 ? 7u : 0u; });
  suppressing.add(finding(ReportKind::lds_race, 1));
  CHECK_FALSE(suppressing.gave_up());
  suppressing.add(finding(ReportKind::lds_race, 2));
  CHECK(suppressing.gave_up());
  const std::vector<ReportSink::Entry> entries = suppressing.take();
  REQUIRE(entries.size() == 2);
  CHECK((entries[0].suppressed == 7 && entries[1].suppressed == 0));
}

} // namespace sluice::test
