//===- report_test.cpp - a timing as text, JSON and listing ---------------------------------------------===//
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <sstream>

#include "timing/timed_kernel.h"
#include "timing_report/report.h"

namespace sluice::test {

namespace {

using nlohmann::json;

const std::string mfma16 = "v_mfma_f32_16x16x16_f16 v[4:7], v[8:9], v[10:11], v[4:7]\n";
const std::string exponential = "v_exp_f32_e32 v3, v2\n";
/// A loop of two, in a loop of three.
const std::string nested = "s_mov_b32 s8, 3\n outer:\n s_mov_b32 s9, 2\n inner:\n" + exponential +
                           exponential +
                           "s_sub_u32 s9, s9, 1\n s_cmp_lg_u32 s9, 0\n s_cbranch_scc1 inner\n"
                           "s_sub_u32 s8, s8, 1\n s_cmp_lg_u32 s8, 0\n s_cbranch_scc1 outer\n" +
                           end_program;

json parsed(const TimingResult &result) {
  return json::parse(timing_report::to_json(result).dump());
}

std::vector<std::string> lines_of(const std::string &text) {
  std::istringstream stream(text);
  std::vector<std::string> all;
  for (std::string line; std::getline(stream, line);)
    all.push_back(line);
  return all;
}

const std::string *line_with(const std::vector<std::string> &lines, std::string_view part) {
  for (const std::string &line : lines)
    if (line.find(part) != std::string::npos) return &line;
  return nullptr;
}

} // namespace

TEST_CASE("a timing as text", "[timing]") {
  const TimingResult result = time_program(mfma16 + mfma16 + end_program, {.workgroups = 2}, {},
                                           {.device = {.clock_mhz = 1000, .compute_units = 80}});
  const std::vector<std::string> lines = lines_of(timing_report::to_text(result));
  // 188 clk until the workgroup starts, 16 for an MFMA, two turns.
  CHECK(lines[0] == "small: about 212 clk, 0.2 us at 1000 MHz on 80 compute units");
  CHECK(lines[1] == "  matrix cores busy 0.1 %, 0.2 TFLOPS in MFMAs");
  CHECK(lines[2] == "  simulated: 2 of 2 workgroups on 2 compute units, 212 clk, 6 instructions");
  CHECK(lines[5].find(" pipe_busy 100.0 % ") != std::string::npos);
  CHECK(lines[6].find("  moved: lds 0.000 TB/s (0.0 %), vector_cache") == 0);
  CHECK(lines.size() == 9);
  CHECK(lines[7].find("  launch: all of the launch was simulated, l2 0.000 TB/s (0.0 %), mall") == 0);
  CHECK(lines[8] == "  XCDs work: 100 % 100 % 0 % 0 % 0 % 0 % 0 % 0 % of the launch; the slowest is 300.0 % "
                    "above the mean");
}

TEST_CASE("a timing as JSON", "[timing]") {
  const TimingResult result =
      time_program(exponential + exponential + mfma16 + end_program, {.workgroups = 320}, {},
                   {.device = {.clock_mhz = 1050, .compute_units = 152}});
  const json r = parsed(result);
  CHECK(r["kernel"] == "small");
  CHECK(r["clk"] == result.device_clk);
  CHECK(r["clock_mhz"] == 1050);
  CHECK(r["compute_units"] == 152);
  CHECK(r["microseconds"] == Approx(double(result.device_clk) / 1050));
  CHECK(r["flops"] == 320 * 8192);
  CHECK(r["tflops"] == Approx(320 * 8192 / (double(result.device_clk) / 1.05e9) * 1e-12));
  CHECK(r["mfma_percent"] == Approx(100. * 320 * 16 / (double(result.device_clk) * 152 * 4)));
  CHECK(r["workgroups"] == 320);
  CHECK(r["occupancy"]["waves_per_simd"] == 8);
  CHECK(r["occupancy"]["workgroups_per_cu"] == 32);
  CHECK(r["occupancy"]["limit"] == "waves");
  const json &s = r["simulated"];
  CHECK(s["compute_units"] == 3);
  CHECK(s["workgroups"] == 9);
  CHECK(s["wave_instructions"] == 9 * 4);
  // The third runs on SIMD 2, whose turns are 2 clk later.
  CHECK(s["clk"] == 188 + 2 + 16 + 16 + 4 + 4);
  CHECK(s["busy"].size() == emulator::timing::pipe_count);
  CHECK(s["busy"]["transcendental"]["clk"] == 9 * 32);
  CHECK(s["busy"]["transcendental"]["percent"] == Approx(100. * 3 * 32 / (4 * 230)));
  CHECK(s["stall_clk"].size() == emulator::timing::stall_count);
  CHECK(s["stall_clk"]["pipe_busy"] == 9 * (12 + 12));
  CHECK(s["levels"].size() == emulator::timing::level_count);
  REQUIRE(s["workgroup_times"].size() == 9);
  const json &second = s["workgroup_times"][1];
  CHECK(second["number"] == 40);
  CHECK(second["start"] == 188);
  CHECK(second["flops"] == 8192);
  CHECK(second["matrix_clk"] == 16);
  CHECK(!r.contains("instructions"));
  CHECK(r["complete"] == false);
  CHECK(r["error_percent"] == Approx(*result.error_percent));
  CHECK(r["extrapolated_along"] == "none");
  CHECK(r["limited_by"] == "");
  CHECK(r["levels"].size() == emulator::timing::level_count);
  CHECK(r["warnings"].empty());
  REQUIRE(r["xcds"].size() == 8);
  for (const json &xcd : r["xcds"]) {
    CHECK(xcd["workgroups"] == 40);
    CHECK(xcd["end_clk"] == Approx(double(result.device_clk)).epsilon(0.02));
  }
  CHECK(r["xcd_imbalance_percent"] == Approx(0).margin(0.01));
}

TEST_CASE("JSON has the bytes that each level moved", "[timing]") {
  Memory memory;
  auto *data = static_cast<std::byte *>(memory.allocate(4096));
  const std::string source =
      "s_load_dwordx2 s[8:9], s[0:1], 0x0\n v_lshlrev_b32_e32 v0, 4, v0\n s_waitcnt lgkmcnt(0)\n"
      "global_load_dwordx4 v[12:15], v0, s[8:9]\n ds_write_b128 v0, v[12:15]\n"
      "s_waitcnt vmcnt(0)\n" +
      end_program;
  const TimingResult result =
      time_program(source, {.lds_bytes = 4096}, {reinterpret_cast<uint64_t>(data)}, {}, memory);
  const json levels = parsed(result)["simulated"]["levels"];
  const double seconds = double(result.simulated_clk) / 2.1e9;
  const std::pair<const char *, double> bytes[] = {
      {"lds", 1024}, {"vector_cache", 1024}, {"l2", 1024 + 128}, {"mall", 1024 + 128}, {"hbm", 1024 + 128}};
  for (const auto &[level, moved] : bytes) {
    INFO(level);
    CHECK(levels[level]["bytes"] == moved);
    // All 304 compute units do the same.
    CHECK(levels[level]["terabytes_per_second"] == Approx(304 * moved / seconds * 1e-12));
  }
  CHECK(levels["hbm"]["most_terabytes_per_second"] == Approx(4.14));
  CHECK(levels["hbm"]["percent"] == Approx(100 * 304 * 1152 / seconds * 1e-12 / 4.14));
}

TEST_CASE("JSON has the instructions on request", "[timing]") {
  const emulator::Program program(code_object_of(nested));
  const TimingResult result = time_program(nested);
  const json r = json::parse(timing_report::to_json(program, result).dump());
  REQUIRE(r["instructions"].size() == 11);
  uint64_t issued = 0;
  for (const json &instruction : r["instructions"])
    issued += instruction["issued"].get<uint64_t>();
  CHECK(issued == r["simulated"]["wave_instructions"]);
  const json &second = r["instructions"][3];
  CHECK(second["text"] == "v_exp_f32_e32 v3, v2");
  CHECK(second["issued"] == 6);
  CHECK(second["stall_clk"]["pipe_busy"] == 6 * 12);
  CHECK(second["stall_clk"].size() == emulator::timing::stall_count);
  const uint64_t first = r["instructions"][0]["address"];
  CHECK(second["address"] == first + 12);
  CHECK(second["loops"] == json{first + 4, first + 8});
  CHECK(r["instructions"][8]["loops"] == json{first + 4});
  CHECK(r["instructions"][10]["loops"].empty());
}

TEST_CASE("a listing reads by block and loop", "[timing]") {
  const emulator::Program program(code_object_of(nested));
  const std::string text = timing_report::listing(program, time_program(nested));
  const std::vector<std::string> lines = lines_of(text);
  INFO(text);
  // Lost: 12 clk for each second exponential, 12 for each taken branch: 3 and 2 times, and 3 * 6.
  CHECK(lines[0].starts_with("small: 44 instructions issued, after which waves lost "));
  const uint64_t all = 6 * 12 + (3 + 2) * 12;
  CHECK(lines[0] == "small: 44 instructions issued, after which waves lost " + std::to_string(all) + " clk");
  // Loops are listed before their first block, outer ones first.
  const std::string *const outer = line_with(lines, "| loop ");
  const std::string *const inner = line_with(lines, "| | loop ");
  REQUIRE(outer);
  REQUIRE(inner);
  CHECK(outer < inner);
  CHECK(outer->find("entered or repeated 3 times: 95.5 % of what was issued, 100.0 % of what was lost") !=
        std::string::npos);
  CHECK(inner->find("entered or repeated 6 times: 68.2 % of what was issued, 81.8 % of what was lost") !=
        std::string::npos);
  const std::string *const block = line_with(lines, "| | block ");
  REQUIRE(block);
  CHECK(block->find(": 5 instructions, 6 times, 81.8 % of what was lost") != std::string::npos);
  // The inner one first, by their first instructions.
  char nest[64];
  const uint64_t entry = program.kernel("small")->entry;
  std::snprintf(nest, sizeof nest, " of loop %06llx in %06llx:", static_cast<unsigned long long>(entry + 8),
                static_cast<unsigned long long>(entry + 4));
  CHECK(block->find(nest) != std::string::npos);
  // The second exponential: six times, 12 clk each, 72 of 132.
  CHECK(line_with(lines, "| |      6        12.0  54.55 %  pipe_busy 100 %"));
  CHECK(line_with(lines, "pipe_busy 100 %")->ends_with(": v_exp_f32_e32 v3, v2"));
  // Columns have the same place at any depth.
  size_t column = 0;
  for (const std::string &line : lines) {
    const size_t at = line.find(": s_");
    if (at == std::string::npos) continue;
    if (column != 0) CHECK(at == column);
    column = at;
  }
  CHECK(line_with(lines, "s_endpgm")->starts_with("         1         0.0"));
}

TEST_CASE("a listing has the two main reasons of a wait", "[timing]") {
  // Two waves in lockstep: the younger waits for the port, and for its slot.
  const std::string source = two_waves(repeat(30, exponential), repeat(30, exponential));
  const emulator::Program program(code_object_of(source));
  TimingResult result = time_program(source, {.waves = 8});
  auto &time = result.instructions[0];
  time.stall_clk = {};
  time.stall_clk[size_t(emulator::timing::Stall::vmcnt)] = 10;
  time.stall_clk[size_t(emulator::timing::Stall::barrier)] = 60;
  time.stall_clk[size_t(emulator::timing::Stall::queue)] = 30;
  CHECK(line_with(lines_of(timing_report::listing(program, result)), "barrier 60 %, queue 30 %   "));
}

TEST_CASE("a listing includes code outside the kernel", "[timing]") {
  const std::string source = exponential + end_program;
  const emulator::Program program(code_object_of(source));
  TimingResult result = time_program(source);
  result.instructions[2100].issued = 3;
  const std::vector<std::string> lines = lines_of(timing_report::listing(program, result));
  CHECK(line_with(lines, "beyond the kernel"));
}

} // namespace sluice::test
