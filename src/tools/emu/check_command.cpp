//===- check_command.cpp - sluice-emu check: what the code shows without running it ---------------------===//

#include "tools/emu/code_file.h"
#include "tools/emu/commands.h"
#include "tools/emu/counted.h"

#include <fmt/format.h>

namespace sluice::tools::emu {

namespace {

std::string source_text(const std::string &source) {
  return source.empty() ? "" : "\n               " + source;
}

} // namespace

int check_command(const CheckOptions &options) {
  const std::unique_ptr<emulator::Program> program = load_code(options.code_file);
  const std::vector<emulator::Report> reports = emulator::static_reports(*program);
  if (options.json) {
    fmt::print("{}\n", emulator::to_json(reports));
  } else {
    // Not as a launch's reports: there is no workgroup and no wave.
    for (const emulator::Report &report : reports) {
      fmt::print("{} at {:#x}: {}: {}\n  instruction  {}{}\n", report.kernel, report.pc,
                 emulator::report_kind_name(report.kind), report.message, report.disassembly,
                 source_text(report.source));
      if (report.other)
        fmt::print("  other        {:#x}: {}{}\n", report.other->pc, report.other->disassembly,
                   source_text(report.other->source));
      fmt::print("\n");
    }
    fmt::print("{}\n", reports.empty() ? "nothing to report" : counted(reports.size(), "report"));
  }
  return reports.empty() ? 0 : 1;
}

} // namespace sluice::tools::emu
