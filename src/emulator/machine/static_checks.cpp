//===- static_checks.cpp - what a program's code shows without running it -------------------------------===//
#include "emulator/check/static_hazards.h"
#include "emulator/machine/program.h"

namespace sluice::emulator {

std::vector<Report> static_reports(const Program &program) {
  const ProgramImpl &p = program.impl();
  std::vector<Report> reports;
  // The last one is the stop behind the end.
  for (const StaticHazard &hazard : static_hazards(p.strict, p.infos, 0, uint32_t(p.strict.size() - 1))) {
    Report report;
    report.kind = ReportKind::hazard;
    report.pc = p.address_of(hazard.op);
    uint64_t entry = 0;
    for (const KernelInfo &kernel : p.kernels)
      if (kernel.entry <= report.pc && kernel.entry >= entry) {
        entry = kernel.entry;
        report.kernel = kernel.name;
      }
    report.message = describe(hazard.found);
    report.disassembly = p.text(hazard.op);
    report.address = hazard.found.operand;
    report.other = Report::Other{p.address_of(hazard.found.other), p.text(hazard.found.other), 0};
    reports.push_back(std::move(report));
  }
  return reports;
}

} // namespace sluice::emulator
