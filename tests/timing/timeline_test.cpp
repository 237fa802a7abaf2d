//===- timeline_test.cpp - what waves do, clk by clk ----------------------------------------------------===//
//
// Clk are counted by hand: the first workgroup starts at 188, when its first wave, on SIMD 0, issues.
//
//===----------------------------------------------------------------------------------------------------===//
#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <nlohmann/json.hpp>

#include "timing/timed_kernel.h"
#include "timing_report/report.h"

namespace sluice::test {

namespace {

using emulator::timing::IssuedBar;
using emulator::timing::Pipe;
using emulator::timing::Stall;
using emulator::timing::WaitingBar;

constexpr uint64_t start = 188;
const std::string mfma16 = "v_mfma_f32_16x16x16_f16 v[4:7], v[8:9], v[10:11], v[4:7]\n";
const std::string add = "v_add_f32_e32 v1, v2, v2\n";
const std::string exponential = "v_exp_f32_e32 v3, v2\n";
const std::string again = "s_sub_u32 s8, s8, 1\n s_cmp_lg_u32 s8, 0\n s_cbranch_scc1 again\n";
/// Iterations of 44 clk, from 192: the branch is issued 28 clk after the first instruction, and taken.
const std::string six_iterations =
    "s_mov_b32 s8, 6\n again:\n" + exponential + exponential + again + end_program;

TimelineRequest window(uint64_t begin, uint64_t end) {
  return {.iteration = {}, .window = std::pair(begin, end)};
}

/// The clk at which a wave of the workgroup issued instructions of a pipe.
std::vector<uint64_t> issues(const Timeline &timeline, uint32_t wave, Pipe pipe) {
  std::vector<uint64_t> clk;
  for (const IssuedBar &bar : timeline.issued)
    if (timeline.waves[bar.wave].wave == wave && bar.pipe == pipe) clk.push_back(bar.clk);
  return clk;
}

} // namespace

TEST_CASE("a timeline shows what a wave issues and waits for", "[timing]") {
  const Timeline timeline = timeline_of(mfma16 + add + add + mfma16 + end_program, window(start, start + 24));
  REQUIRE(timeline.waves.size() == 1);
  CHECK(timeline.waves[0].workgroup == 0);
  CHECK(timeline.waves[0].simd == 0);
  REQUIRE(timeline.issued.size() == 5);
  struct Expected {
    Pipe pipe;
    uint64_t clk, end;
  };
  const Expected expected[] = {{Pipe::matrix, 0, 16},
                               {Pipe::valu, 4, 8},
                               {Pipe::valu, 8, 12},
                               {Pipe::matrix, 16, 32},
                               {Pipe::internal, 20, 24}};
  for (uint32_t i = 0; i < 5; ++i) {
    INFO(i);
    CHECK(timeline.issued[i].op == i);
    CHECK(timeline.issued[i].pipe == expected[i].pipe);
    CHECK(timeline.issued[i].clk == start + expected[i].clk);
    CHECK(timeline.issued[i].busy.begin == start + expected[i].clk);
    CHECK(timeline.issued[i].busy.end == start + expected[i].end);
  }
  REQUIRE(timeline.waiting.size() == 1);
  CHECK(timeline.waiting[0].op == 3);
  CHECK(timeline.waiting[0].reason == Stall::pipe_busy);
  CHECK(timeline.waiting[0].begin == start + 12);
  CHECK(timeline.waiting[0].end == start + 16);
}

TEST_CASE("a timeline shows only what overlaps its window", "[timing]") {
  const std::string source = mfma16 + add + add + mfma16 + end_program;
  // The pipe's time of the first MFMA is included, though not the issue.
  const Timeline timeline = timeline_of(source, window(start + 12, start + 16));
  REQUIRE(timeline.issued.size() == 1);
  CHECK(timeline.issued[0].clk == start);
  CHECK(timeline.waiting.size() == 1);
  CHECK(timeline_of(source, window(start + 16, start + 17)).issued.size() == 1);
  CHECK(timeline_of(source, window(start + 16, start + 17)).waiting.empty());
}

TEST_CASE("a younger wave works beside the matrix instructions of an older one", "[timing]") {
  const std::string source = two_waves(repeat(20, mfma16), repeat(60, add));
  const TimedShape shape{.waves = 8};
  const uint64_t end = time_program(source, shape).simulated_clk;
  const Timeline timeline = timeline_of(source, window(start, end), shape);
  REQUIRE(timeline.waves.size() == 8);
  for (uint32_t i = 0; i < 8; ++i) { // by SIMD, then age
    CHECK(timeline.waves[i].simd == i / 2);
    CHECK(timeline.waves[i].wave == i / 2 + i % 2 * 4);
  }
  const std::vector<uint64_t> matrix = issues(timeline, 0, Pipe::matrix);
  const std::vector<uint64_t> adds = issues(timeline, 4, Pipe::valu);
  REQUIRE(matrix.size() == 20);
  for (size_t i = 1; i + 1 < matrix.size(); ++i) {
    INFO(i);
    CHECK(matrix[i] == matrix[0] + 16 * i);
    if (matrix[i] < adds[4]) continue; // the younger one has begun
    if (matrix[i] + 16 > adds.back()) break;
    const auto first = std::lower_bound(adds.begin(), adds.end(), matrix[i]);
    REQUIRE(adds.end() - first >= 3);
    CHECK(std::vector(first, first + 3) == std::vector{matrix[i] + 4, matrix[i] + 8, matrix[i] + 12});
  }
  // A wave issues, for a turn, or waits: from its start to its end.
  std::map<uint32_t, std::vector<std::pair<uint64_t, uint64_t>>> time;
  for (const IssuedBar &bar : timeline.issued)
    time[bar.wave].emplace_back(bar.clk, bar.clk + 4);
  for (const WaitingBar &bar : timeline.waiting)
    time[bar.wave].emplace_back(bar.begin, bar.end);
  CHECK(time.size() == 8);
  for (auto &[wave, parts] : time) {
    std::sort(parts.begin(), parts.end());
    CHECK(parts.front().first == start);
    for (size_t i = 1; i < parts.size(); ++i)
      CHECK(parts[i].first == parts[i - 1].second);
  }
}

TEST_CASE("work for a port or path begins when the earlier work is done", "[timing]") {
  Memory memory;
  auto *data = static_cast<std::byte *>(memory.allocate(4096));
  // Both reads take the port for 16 clk; both loads of 16 bytes a lane the path for 16.
  const std::string source =
      "s_load_dwordx2 s[8:9], s[0:1], 0x0\n v_lshlrev_b32_e32 v0, 4, v0\n s_waitcnt lgkmcnt(0)\n"
      ".p2align 5\n ds_read_b128 v[4:7], v0\n ds_read_b128 v[8:11], v0\n"
      "global_load_dwordx4 v[12:15], v0, s[8:9]\n global_load_dwordx4 v[16:19], v0, s[8:9]\n" +
      end_program;
  const Timeline timeline = timeline_of(source, window(start, start + 5000), {.lds_bytes = 4096},
                                        {reinterpret_cast<uint64_t>(data)}, {}, memory);
  for (Pipe pipe : {Pipe::lds, Pipe::vmem}) {
    std::vector<IssuedBar> bars;
    for (const IssuedBar &bar : timeline.issued)
      if (bar.pipe == pipe) bars.push_back(bar);
    REQUIRE(bars.size() == 2);
    CHECK(bars[0].busy.begin == bars[0].clk);
    CHECK(bars[0].busy.end == bars[0].clk + 16);
    CHECK(bars[1].clk == bars[0].clk + 4);
    CHECK(bars[1].busy.begin == bars[0].busy.end);
    CHECK(bars[1].busy.end == bars[1].busy.begin + 16);
  }
}

TEST_CASE("an iteration is found from the program", "[timing]") {
  const Timeline timeline = timeline_of(six_iterations, {.iteration = 2, .window = {}});
  CHECK(timeline.begin == start + 4 + 2 * 44);
  CHECK(timeline.end == timeline.begin + 44);
  REQUIRE(timeline.iteration);
  CHECK(timeline.iteration->number == 2);
  CHECK(timeline.iteration->count == 6);
  CHECK(timeline.iteration->wave == 0);
  CHECK(issues(timeline, 0, Pipe::branch).size() == 1);
  SECTION("the last one ends with its last instruction") {
    const Timeline last = timeline_of(six_iterations, {.iteration = 5, .window = {}});
    CHECK(last.begin == start + 4 + 5 * 44);
    CHECK(last.end == last.begin + 28 + 4);
  }
  SECTION("by default in the middle") {
    CHECK(timeline_of(six_iterations, {}).iteration->number == 3);
  }
  SECTION("by default one as long as the median") {
    // The fourth of six, with s8 at 3, is much longer.
    const std::string source = "s_mov_b32 s8, 6\n again:\n s_cmp_lg_u32 s8, 3\n s_cbranch_scc1 usual\n" +
                               repeat(8, "s_nop 15\n") + "usual:\n" + again + end_program;
    const Timeline usual = timeline_of(source, {});
    CHECK(usual.iteration->number == 2);
    CHECK(usual.end - usual.begin < 8 * 64);
  }
  SECTION("of a workgroup in the middle of those simulated") {
    const Timeline middle =
        timeline_of(six_iterations, {}, {.workgroups = 2000, .lds_bytes = 65536}, {}, {.workgroups = 5});
    CHECK(middle.iteration->workgroup == 1000);
    // It also ran before, so that places were taken; these iterations are not among the six.
    CHECK(middle.iteration->count == 6);
  }
  SECTION("of the first wave that enters the loop") {
    const std::string source = two_waves("s_nop 0\n", "s_mov_b32 s8, 6\n again:\n" + again);
    CHECK(timeline_of(source, {}, {.waves = 8}).iteration->wave == 4);
  }
}

TEST_CASE("the innermost loop with the most issues is chosen", "[timing]") {
  auto loop = [](const std::string &name, const std::string &counter, uint32_t times,
                 const std::string &body) {
    return "s_mov_b32 " + counter + ", " + std::to_string(times) + "\n " + name + ":\n" + body +
           "s_sub_u32 " + counter + ", " + counter + ", 1\n s_cmp_lg_u32 " + counter +
           ", 0\n s_cbranch_scc1 " + name + "\n";
  };
  const std::string few = loop("few", "s10", 5, "");
  const std::string nested = loop("outer", "s9", 3, repeat(40, add) + loop("inner", "s8", 7, ""));
  const std::string cold = "s_branch after\n" + loop("cold", "s11", 9, repeat(9, add)) + "after:\n";
  for (const std::string &source : {few + nested, nested + few, cold + few + nested}) {
    const Timeline timeline = timeline_of(source + end_program, {});
    CHECK(timeline.iteration->count == 3 * 7);
    CHECK(issues(timeline, 0, Pipe::salu).size() == 2);
  }
  // An inner loop that never runs does not keep the outer one from being innermost.
  const std::string skipping = loop(
      "outer", "s9", 3, "s_cmp_eq_u32 0, 0\n s_cbranch_scc1 past\n" + loop("inner", "s8", 7, "") + "past:\n");
  CHECK(timeline_of(skipping + end_program, {}).iteration->count == 3);
}

TEST_CASE("each simulation of a timeline finds the memory as it was", "[timing]") {
  Memory memory;
  auto *count = static_cast<uint32_t *>(memory.allocate(64));
  *count = 7;
  const Timeline timeline = timeline_of(
      "s_load_dwordx2 s[10:11], s[0:1], 0x0\n s_waitcnt lgkmcnt(0)\n s_load_dword s8, s[10:11], 0x0\n"
      "s_waitcnt lgkmcnt(0)\n v_mov_b32_e32 v1, 2\n v_mov_b32_e32 v2, 0\n global_store_dword v2, v1, "
      "s[10:11]\n"
      "again:\n" +
          again + end_program,
      {.iteration = 6, .window = {}}, {}, {reinterpret_cast<uint64_t>(count)}, {}, memory);
  CHECK(timeline.iteration->count == 7);
  CHECK(issues(timeline, 0, Pipe::branch).size() == 1);
  CHECK(*count == 2);
}

TEST_CASE("watching changes nothing", "[timing]") {
  const emulator::Program program(code_object_of(six_iterations));
  const std::array<uint64_t, 8> arguments{};
  const Memory memory;
  const auto launch = emulator::timing::time_launch_with_timeline(
      program, "small", {3, 1, 1}, {256, 1, 1}, 0, std::as_bytes(std::span(arguments)), memory, {}, {});
  CHECK(timing_report::to_json(launch.result) ==
        timing_report::to_json(time_program(six_iterations, {.waves = 4, .workgroups = 3})));
}

TEST_CASE("a missing timeline is refused", "[timing]") {
  auto refusal = [](const std::string &source, const TimelineRequest &request) -> std::string {
    try {
      timeline_of(source, request);
    } catch (const std::invalid_argument &error) {
      return error.what();
    }
    return "";
  };
  using Catch::Contains;
  CHECK_THAT(refusal(six_iterations, {.iteration = 6, .window = {}}),
             Contains("iteration 6") && Contains("has 6"));
  CHECK_THAT(refusal(six_iterations, {.iteration = 1, .window = std::pair<uint64_t, uint64_t>(1, 2)}),
             Contains("an iteration and a window are both given"));
  CHECK_THAT(refusal(six_iterations, window(7, 7)), Contains("7 to 7"));
  CHECK_THAT(refusal(six_iterations, window(0, 65537)), Contains("0 to 65537") && Contains("65536"));
  CHECK(refusal(six_iterations, window(0, 65536)).empty());
  CHECK_THAT(refusal(six_iterations, window(100000, 100001)), Contains("begins at 100000"));
  CHECK_THAT(refusal(end_program, {}), Contains("no loop"));
  // An iteration of 1100 times 64 clk.
  CHECK_THAT(refusal("s_mov_b32 s8, 2\n again:\n" + repeat(1100, "s_nop 15\n") + again + end_program, {}),
             Contains("the iteration is") && Contains("65536"));
  const std::string one_workgroup_loops =
      "s_cmp_eq_u32 s2, 0\n s_cbranch_scc0 done\n s_mov_b32 s8, 6\n again:\n" + again + "done:\n" +
      end_program;
  CHECK_THROWS_WITH(
      timeline_of(one_workgroup_loops, {}, {.workgroups = 1000, .lds_bytes = 65536}, {}, {.workgroups = 2}),
      Contains("workgroup 999 does not enter the loop"));
}

TEST_CASE("reports of a launch replace its timeline", "[timing]") {
  const emulator::Program program(code_object_of("s_trap 2\n s_endpgm\n"));
  const std::array<uint64_t, 8> arguments{};
  const Memory memory;
  const auto launch = emulator::timing::time_launch_with_timeline(
      program, "small", {1, 1, 1}, {64, 1, 1}, 0, std::as_bytes(std::span(arguments)), memory, {}, {});
  CHECK(launch.result.reports.size() == 1);
  CHECK(launch.timeline.waves.empty());
}

} // namespace sluice::test
