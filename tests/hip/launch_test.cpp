//===- launch_test.cpp - launch values that compilers use, and lines of the source ----------------------===//
#include <fstream>
#include <set>

#include "hip/hip_fixture.h"

namespace sluice::test {

namespace {

struct Seen {
  uint32_t thread[3], block[3], block_dim[3], grid_dim[3];
  uint32_t windows, queue_knows_lds, marker, packet_grid_x;
};

void check_coordinates(std::span<const Build> builds) {
  constexpr std::array<uint32_t, 3> grid{3, 2, 2}, block{5, 4, 7};
  constexpr uint32_t block_items = 5 * 4 * 7, items = block_items * 12;
  Memory memory;
  const auto seen = device<Seen>(memory, items);
  std::vector<Seen> expected(items);
  for (uint32_t i = 0; i < items; ++i) {
    const uint32_t item = i % block_items, b = i / block_items;
    // One of each: LDS, scratch, neither.
    expected[i] = {{item % 5, item / 5 % 4, item / 20},
                   {b % 3, b / 3 % 2, b / 6},
                   {5, 4, 7},
                   {3, 2, 2},
                   1u | 2u << 2,
                   1,
                   4711,
                   15};
  }
  run_everywhere(
      builds, {"coordinates", grid, block}, memory, Arguments(seen.data(), 4711u),
      [&] { std::fill(seen.begin(), seen.end(), Seen{}); },
      [&] { CHECK(std::memcmp(seen.data(), expected.data(), items * sizeof(Seen)) == 0); });
}

} // namespace

TEST_CASE("coordinates and windows, in code objects of each version", "[hip][launch]") {
  constexpr Build builds[] = {{"version 4, -O0", SLUICE_CODE_OBJECT_HIP_LAUNCH_V4_O0},
                              {"version 4, -O3", SLUICE_CODE_OBJECT_HIP_LAUNCH_V4_O3},
                              {"version 5, -O0", SLUICE_CODE_OBJECT_HIP_LAUNCH_V5_O0},
                              {"version 5, -O3", SLUICE_CODE_OBJECT_HIP_LAUNCH_V5_O3},
                              {"version 6, -O0", SLUICE_CODE_OBJECT_HIP_LAUNCH_V6_O0},
                              {"version 6, -O3", SLUICE_CODE_OBJECT_HIP_LAUNCH_V6_O3}};
  std::set<uint32_t> versions;
  for (const Build &build : builds)
    versions.insert(package::CodeObject::parse(read_file(build.file)).version());
  CHECK(versions == std::set<uint32_t>{4, 5, 6});
  check_coordinates(builds);
}

TEST_CASE("code for the family of the chip", "[hip][launch]") {
  constexpr Build builds[] = {{"gfx9-4-generic", SLUICE_CODE_OBJECT_HIP_LAUNCH_GENERIC}};
  CHECK(package::CodeObject::parse(read_file(builds[0].file)).target_id() == "gfx9-4-generic");
  check_coordinates(builds);
}

TEST_CASE("arguments in registers, and the prologue for firmware that puts none there", "[hip][launch]") {
  constexpr Build build{"preloaded", SLUICE_CODE_OBJECT_HIP_LAUNCH_PRELOADED};
  const std::vector<std::byte> elf = read_file(build.file);
  const package::CodeObject object = package::CodeObject::parse(elf);
  REQUIRE(object.find_kernel("many_arguments")->descriptor.preload_length() > 8);
  check_coordinates({&build, 1});

  Memory memory;
  const auto out = device<uint64_t>(memory, 128);
  const Arguments arguments(out.data(), 1'000'000u, uint16_t(20'000), uint8_t(200), uint64_t(1) << 40, 3.0f,
                            5.0, 7u);
  const uint64_t expected = 1'000'000 + 20'000 * 2 + 200 * 3 + (uint64_t(5) << 40) + 3 * 7 + 5 * 11 + 7 * 13;
  uint64_t executed[2];
  for (bool preload : {false, true}) {
    std::fill(out.begin(), out.end(), 0);
    Options options;
    options.preload_kernargs = preload;
    const LaunchResult result = emulator::launch(program_of(build), "many_arguments", {2, 1, 1}, {64, 1, 1},
                                                 0, arguments.bytes(), memory, options);
    INFO(all_text(result));
    REQUIRE(result.ok());
    CHECK(std::all_of(out.begin(), out.end(), [&](uint64_t value) { return value == expected; }));
    executed[preload] = result.counters.wave_instructions;
  }
  CHECK(executed[true] < executed[false]);
}

//===--- Lines of the source ----------------------------------------------------------------------------===//

namespace {

/// "file:line" of the line of race.hip that ends in a comment.
std::string line_with(const std::string &comment) {
  std::ifstream source(SLUICE_RACE_SOURCE);
  std::string line;
  for (int number = 1; std::getline(source, line); ++number)
    if (line.ends_with("// " + comment)) return SLUICE_RACE_SOURCE ":" + std::to_string(number);
  throw std::runtime_error("no line ends in // " + comment);
}

LaunchResult run_race(std::span<const std::byte> elf) {
  const emulator::Program program(elf);
  Memory memory;
  const auto out = device<uint32_t>(memory, 128);
  std::fill(out.begin(), out.end(), 1);
  Options options;
  options.threads = 1;
  options.checks.global_races = false;
  return emulator::launch(program, "race", {1, 1, 1}, {128, 1, 1}, 0, Arguments(out.data()).bytes(), memory,
                          options);
}

/// The race as the load sees it; the store sees it, too.
Report race_at_load(const LaunchResult &result) {
  for (const Report &report : result.reports)
    if (report.kind == ReportKind::lds_race && report.disassembly.starts_with("ds_read") && report.other)
      return report;
  throw std::runtime_error("no race at a load in:\n" + all_text(result));
}

} // namespace

TEST_CASE("reports name the line of both instructions", "[hip][lines]") {
  const LaunchResult result = run_race(read_file(SLUICE_CODE_OBJECT_HIP_RACE_LINES));
  const Report report = race_at_load(result);
  CHECK(report.source == line_with("loads"));
  CHECK(report.other->source == line_with("stores") + ", inlined at " + line_with("calls"));
  CHECK_THAT(to_text(report), Catch::Contains(report.source) && Catch::Contains(report.other->source));
  CHECK_THAT(to_json(result.reports), Catch::Contains("\"source\": \"" + report.source + "\"") &&
                                          Catch::Contains("\"source\": \"" + report.other->source + "\""));
}

TEST_CASE("reports name no line without debug information", "[hip][lines]") {
  const LaunchResult result = run_race(read_file(SLUICE_CODE_OBJECT_HIP_RACE_PLAIN));
  const Report report = race_at_load(result);
  CHECK(report.source.empty());
  CHECK(report.other->source.empty());
  CHECK_THAT(to_text(report), !Catch::Contains(".hip"));
}

TEST_CASE("broken debug information costs the line, not the report", "[hip][lines]") {
  const std::vector<std::byte> whole = read_file(SLUICE_CODE_OBJECT_HIP_RACE_NOWHERE);
  std::mt19937 random(1);
  // The sections with debug information follow the loaded segments.
  size_t loaded_end = 0;
  const package::CodeObject object = package::CodeObject::parse(whole);
  for (const package::Segment &segment : object.segments())
    loaded_end = std::max(loaded_end, size_t(segment.file.data() - whole.data()) + segment.file.size());
  for (int i = 0; i < 300; ++i) {
    std::vector<std::byte> elf = whole;
    for (int change = 0; change < 20; ++change)
      elf[loaded_end + random() % (elf.size() - loaded_end - 64 * 32)] = std::byte(random());
    try {
      CHECK_FALSE(run_race(elf).ok());
    } catch (const package::CodeObjectError &) { // the change was to bytes that a loader reads
    }
  }
}

} // namespace sluice::test
