//===- check_command.cpp - sluice-emu check: what the code shows without execution ----------------------===//

#include "tools/emu/code_file.h"
#include "tools/emu/commands.h"
#include "tools/emu/counted.h"

#include <algorithm>
#include <fmt/format.h>

namespace sluice::tools::emu {

namespace {

std::string source_text(const std::string &source) {
  return source.empty() ? "" : "\n               " + source;
}

/// Prints one line for each that could be smaller or removed, and the total number.
void print_nops(const emulator::Program &program) {
  const std::vector<emulator::NopStates> nops = emulator::nop_states(program);
  size_t larger = 0;
  for (const emulator::NopStates &nop : nops) {
    if (nop.needed == nop.given) continue;
    ++larger;
    fmt::print("{:#x}: s_nop gives {}, {} needed\n", nop.pc, counted(nop.given, "wait state"),
               nop.needed == 0 ? "none is"
                               : fmt::format("{} {}", nop.needed, nop.needed == 1 ? "is" : "are"));
  }
  fmt::print("{} of {} s_nop give more than is needed\n", larger, nops.size());
}

} // namespace

int check_command(const CheckOptions &options) {
  using emulator::HazardLevel;
  const std::unique_ptr<emulator::Program> program = load_code(options.code_file);
  const bool with_waived = options.fail_on == emulator::hazard_level_name(HazardLevel::waived);
  const std::vector<emulator::Report> reports = emulator::static_reports(*program, with_waived);
  std::string by_level;
  bool failed = false;
  bool serious = true; // down to the level of --fail-on
  for (const HazardLevel level :
       {HazardLevel::required, HazardLevel::compiler, HazardLevel::by_count, HazardLevel::waived}) {
    if (level == HazardLevel::waived && !with_waived) break;
    const auto count = std::ranges::count(reports, level, &emulator::Report::level);
    const std::string_view name = emulator::hazard_level_name(level);
    by_level += fmt::format("{}{} {}", by_level.empty() ? "" : ", ", count, name);
    failed = failed || (serious && count != 0);
    serious = serious && name != options.fail_on;
  }
  if (options.json) {
    fmt::print("{}\n", emulator::to_json(reports));
  } else {
    // Unlike a launch's reports, without workgroups and waves.
    for (const emulator::Report &report : reports) {
      fmt::print("{} at {:#x}: {}: {}\n  instruction  {}{}\n", report.kernel, report.pc,
                 emulator::kind_text(report), report.message, report.disassembly, source_text(report.source));
      if (report.other)
        fmt::print("  other        {:#x}: {}{}\n", report.other->pc, report.other->disassembly,
                   source_text(report.other->source));
      fmt::print("\n");
    }
    if (reports.empty())
      fmt::print("nothing to report\n");
    else
      fmt::print("{}: {}\n", counted(reports.size(), "report"), by_level);
  }
  if (options.nops) print_nops(*program);
  return failed ? 1 : 0;
}

} // namespace sluice::tools::emu
