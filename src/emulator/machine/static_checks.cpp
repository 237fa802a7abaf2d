//===- static_checks.cpp - what a program's code shows without running it -------------------------------===//
#include "emulator/check/static_hazards.h"
#include "emulator/isa/source_lines.h"
#include "emulator/machine/program.h"

namespace sluice::emulator {

std::vector<Report> static_reports(const Program &program) {
  const ProgramImpl &p = program.impl();
  std::vector<Report> reports;
  std::optional<SourceLines> lines; // most programs have nothing to report
  // The last one is the stop behind the end.
  for (const StaticHazard &hazard : static_hazards(p.strict, p.infos, 0, uint32_t(p.strict.size() - 1))) {
    Report report;
    report.kind = ReportKind::hazard;
    report.level = hazard.found.level;
    report.rule = uint8_t(hazard.found.rule);
    report.fails = report_fails(report.kind, report.level, Checks::warned_of());
    report.pc = p.address_of(hazard.op);
    uint64_t entry = 0;
    for (const KernelInfo &kernel : p.kernels)
      if (kernel.entry <= report.pc && kernel.entry >= entry) {
        entry = kernel.entry;
        report.kernel = kernel.name;
      }
    report.message = describe(hazard.found);
    report.disassembly = p.text(hazard.op);
    if (!lines) lines.emplace(p.file);
    report.source = lines->at(report.pc);
    report.address = hazard.found.operand;
    report.other = Report::Other{p.address_of(hazard.found.other), p.text(hazard.found.other), 0,
                                 lines->at(p.address_of(hazard.found.other))};
    reports.push_back(std::move(report));
  }
  return reports;
}

} // namespace sluice::emulator
