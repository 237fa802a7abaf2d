//===- gallery_test.cpp - the bug gallery: every mistake is found, right programs are silent ------------===//
//
// The head of a program says which report is expected, whether it is a warning, and at which instruction.
// Exactly this must be reported, in every order in which loads complete, waves run and workgroups start; and
// not when the check is off. `report: none` is the head of a right program, of which nothing is reported.
//
//===----------------------------------------------------------------------------------------------------===//
#include <catch2/catch.hpp>

#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "isa/kernel_fixture.h"

namespace sluice::test {

namespace {

using emulator::WaveSchedule;
using emulator::WorkgroupSchedule;

struct GalleryProgram {
  std::string name;
  // "report", "level", "severity", "at", "other", "lane", "message" (a part of it), "launch"
  std::map<std::string, std::string> head;

  bool is_right() const { return head.at("report") == "none"; }
  /// Whether its report fails nothing: a warning or a note.
  bool passes() const { return head.contains("severity") && head.at("severity") != "error"; }
  /// The level of a hazard.
  std::string level() const { return head.contains("level") ? head.at("level") : "required"; }

  uint32_t number(const std::string &key, uint32_t otherwise) const {
    const auto launch = head.find("launch");
    if (launch == head.end()) return otherwise;
    const size_t at = launch->second.find(key + "=");
    return at == std::string::npos ? otherwise
                                   : uint32_t(std::stoul(launch->second.substr(at + key.size() + 1)));
  }
};

std::vector<GalleryProgram> all_programs() {
  std::vector<GalleryProgram> programs;
  for (const auto &entry : std::filesystem::directory_iterator(SLUICE_GALLERY_SOURCES)) {
    if (entry.path().extension() != ".s") continue;
    GalleryProgram program{entry.path().stem().string(), {}};
    std::ifstream file(entry.path());
    for (std::string line; std::getline(file, line) && line.starts_with("// ");) {
      const size_t colon = line.find(": ");
      if (colon != std::string::npos) program.head[line.substr(3, colon - 3)] = line.substr(colon + 2);
    }
    programs.push_back(std::move(program));
  }
  std::sort(programs.begin(), programs.end(), [](const auto &a, const auto &b) { return a.name < b.name; });
  return programs;
}

std::vector<GalleryProgram> all_mistakes() {
  std::vector<GalleryProgram> programs = all_programs();
  std::erase_if(programs, [](const GalleryProgram &program) { return program.is_right(); });
  return programs;
}

emulator::Program code_of(const GalleryProgram &program, int bug) {
  return emulator::Program(read_file(std::string(SLUICE_GALLERY_OBJECTS) + "/" + program.name + "." +
                                     std::to_string(bug) + ".co"));
}

LaunchResult run(const GalleryProgram &program, int bug, Options options) {
  const emulator::Program code = code_of(program, bug);
  Memory memory;
  constexpr size_t bytes = 64 << 10;
  auto *data = static_cast<uint32_t *>(memory.allocate(bytes));
  for (uint32_t i = 0; i < bytes / 4; ++i)
    data[i] = i;
  void *fresh = memory.allocate(bytes, Memory::Contents::undefined);
  void *zeros = memory.allocate(4096);
  std::memset(zeros, 0, 4096);
  const std::array<uint64_t, 3> arguments{reinterpret_cast<uint64_t>(data), reinterpret_cast<uint64_t>(fresh),
                                          reinterpret_cast<uint64_t>(zeros)};
  options.instruction_budget = 10'000;
  return emulator::launch(code, "program", {program.number("groups", 1), 1, 1},
                          {64 * program.number("waves", 1), 1, 1}, program.number("lds", 1024),
                          std::as_bytes(std::span(arguments)), memory, options);
}

/// One thread, and every check.
Options strictest() {
  Options options;
  options.threads = 1;
  for (std::string_view name : emulator::check_names())
    *emulator::check_by_name(options.checks, name) = true;
  return options;
}

/// Every order of completion, of waves and of workgroups; one and two host threads.
std::vector<Options> all_orders() {
  std::vector<Options> orders;
  auto add = [&](auto &&set) {
    Options options = strictest();
    set(options);
    orders.push_back(options);
  };
  for (CompletionOrder completion : {CompletionOrder::late, CompletionOrder::early, CompletionOrder::random})
    for (WaveSchedule waves : {WaveSchedule::greedy, WaveSchedule::round_robin, WaveSchedule::random})
      add([&](Options &o) { o.completion = completion, o.wave_schedule = waves; });
  for (WorkgroupSchedule groups :
       {WorkgroupSchedule::descending, WorkgroupSchedule::by_xcd, WorkgroupSchedule::random})
    add([&](Options &o) { o.workgroup_schedule = groups; });
  add([](Options &o) { o.threads = 2; });
  return orders;
}

bool is_in_order(const Options &options) {
  return options.wave_schedule == WaveSchedule::greedy &&
         options.workgroup_schedule == WorkgroupSchedule::ascending && options.threads == 1;
}

/// Reports that no switch turns off: the wave cannot continue.
const std::set<std::string> fatal{"budget_exhausted", "invalid_pc", "misaligned", "trap",
                                  "unknown_instruction"};
/// Reports of the check that cannot be set to only warn.
const std::set<std::string> refused_by_memory{"global_out_of_bounds", "global_read_only",
                                              "scratch_out_of_bounds"};

} // namespace

TEST_CASE("every mistake of the gallery is found", "[gallery]") {
  const std::vector<GalleryProgram> programs = all_mistakes();
  CHECK(programs.size() >= 83);
  for (const GalleryProgram &program : programs) {
    const std::string listing = code_of(program, 1).disassemble("program");
    for (const Options &options : all_orders()) {
      const LaunchResult result = run(program, 1, options);
      INFO(program.name << ", completion " << int(options.completion) << ", waves "
                        << int(options.wave_schedule) << ", workgroups " << int(options.workgroup_schedule)
                        << "\n"
                        << all_text(result));
      REQUIRE(!result.reports.empty());
      // If two accesses are not ordered, either may come first, and each order has a report of its own.
      const bool race = program.head.at("report").ends_with("_race");
      const std::string &at = program.head.at("at");
      const std::string other = program.head.contains("other") ? program.head.at("other") : "";
      bool any_as_written = false;
      for (const Report &report : result.reports) {
        CHECK(report_kind_name(report.kind) == program.head.at("report"));
        CHECK(hazard_level_name(report.level) == program.level());
        CHECK(report.fails != program.passes());
        CHECK(report.kernel == "program");
        char place[32];
        std::snprintf(place, sizeof place, "%06llx: ", static_cast<unsigned long long>(report.pc));
        CHECK_THAT(listing, Catch::Contains(place + report.disassembly));
        if (program.head.contains("lane")) CHECK(std::to_string(report.lane) == program.head.at("lane"));
        if (program.head.contains("message"))
          CHECK_THAT(report.message, Catch::Contains(program.head.at("message")));
        REQUIRE(report.other.has_value() == !other.empty());
        const std::string theirs = report.other ? report.other->disassembly : "";
        const bool as_written = report.disassembly.starts_with(at) && theirs.starts_with(other);
        any_as_written |= as_written;
        CHECK((as_written || (race && report.disassembly.starts_with(other) && theirs.starts_with(at))));
      }
      // Waves that run one after the other meet in the order that the program is written for.
      if (is_in_order(options)) CHECK(any_as_written);
      CHECK(result.reports.size() <= (race ? 3 : 1)); // each of two loads meets the store
    }
  }
}

TEST_CASE("right programs and the twins without the mistake are silent", "[gallery]") {
  for (const GalleryProgram &program : all_programs())
    for (const Options &options : all_orders()) {
      const LaunchResult result = run(program, 0, options);
      INFO(program.name << "\n" << all_text(result));
      CHECK(result.ok());
    }
}

TEST_CASE("only a mistake that is an error, not a warning, fails the launch", "[gallery]") {
  for (const GalleryProgram &program : all_mistakes()) {
    INFO(program.name);
    CHECK((run(program, 1, strictest()).failure() == nullptr) == program.passes());
    // If all reports that can be warnings are, the reports stay the same.
    Options options = strictest();
    options.warnings = emulator::parse_warnings("all");
    const LaunchResult warned = run(program, 1, options);
    CHECK_FALSE(warned.ok());
    const std::string &kind = program.head.at("report");
    CHECK((warned.failure() != nullptr) == (fatal.contains(kind) || refused_by_memory.contains(kind)));
    options.warnings = emulator::parse_warnings("none");
    CHECK(run(program, 1, options).failure() != nullptr);
  }
}

TEST_CASE("a check that is off does not report", "[gallery]") {
  std::set<std::string> needed;
  for (const GalleryProgram &program : all_mistakes()) {
    INFO(program.name);
    if (fatal.contains(program.head.at("report"))) {
      // Without any check the machine leaves lanes of a misaligned atomic out, and goes on.
      Options options = strictest();
      options.checks = Checks::none();
      options.completion = CompletionOrder::early;
      CHECK((run(program, 1, options).failure() != nullptr) == (program.head.at("report") != "misaligned"));
      continue;
    }
    // Exactly one check finds it.
    std::vector<std::string> finders;
    for (std::string_view name : emulator::check_names()) {
      Options options = strictest();
      *emulator::check_by_name(options.checks, name) = false;
      if (run(program, 1, options).ok()) finders.emplace_back(name);
    }
    REQUIRE(finders.size() == 1);
    needed.insert(finders[0]);
  }
  // And each check has a program that needs it, except for those of streams, library calls and whole
  // programs.
  const std::set<std::string_view> not_of_kernels{"stream_races", "contents", "leaks", "ignored_errors",
                                                  "unwritten_copies"};
  for (std::string_view name : emulator::check_names()) {
    if (not_of_kernels.contains(name)) continue;
    INFO(name);
    CHECK(needed.contains(std::string(name)));
  }
}

TEST_CASE("missing wait states are found without running", "[gallery]") {
  for (const GalleryProgram &program : all_programs()) {
    INFO(program.name);
    CHECK(emulator::static_reports(code_of(program, 0), /*with_waived=*/true).empty());
    CHECK(emulator::static_reports(code_of(program, 1)).empty() ==
          (program.head.at("report") != "hazard" || program.level() == "waived"));
    const std::vector<Report> found = emulator::static_reports(code_of(program, 1), /*with_waived=*/true);
    REQUIRE(found.size() == (program.head.at("report") == "hazard" ? 1 : 0));
    if (found.empty()) continue;
    CHECK(found[0].kernel == "program");
    CHECK(hazard_level_name(found[0].level) == program.level());
    CHECK(found[0].fails != program.passes());
    CHECK_THAT(found[0].disassembly, Catch::StartsWith(program.head.at("at")));
    CHECK_THAT(found[0].other->disassembly, Catch::StartsWith(program.head.at("other")));
  }
}

} // namespace sluice::test
