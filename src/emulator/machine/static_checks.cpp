//===- static_checks.cpp - checks a program's code without running it -----------------------------------===//
#include "emulator/check/static_hazards.h"
#include "emulator/isa/source_lines.h"
#include "emulator/machine/program.h"

namespace sluice::emulator {

namespace {

std::array<bool, hazard_levels> levels(bool with_waived) {
  std::array<bool, hazard_levels> result;
  result.fill(true);
  result[size_t(HazardLevel::waived)] = with_waived;
  return result;
}

} // namespace

std::array<bool, hazard_levels> ProgramImpl::hazard_levels_from(uint32_t entry) const {
  const std::lock_guard lock(mutex);
  const auto [at, is_new] = levels_by_entry.try_emplace(entry);
  if (is_new) at->second = emulator::hazard_levels_from(strict, infos, uint32_t(strict.size() - 1), entry);
  return at->second;
}

std::vector<Report> static_reports(const Program &program, bool with_waived) {
  const ProgramImpl &p = program.impl();
  std::vector<Report> reports;
  std::optional<SourceLines> lines; // most programs have nothing to report
  // The last one is the stop after the end.
  const uint32_t end = uint32_t(p.strict.size() - 1);
  for (const StaticHazard &hazard : static_hazards(p.strict, p.infos, 0, end, levels(with_waived))) {
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

std::vector<NopStates> nop_states(const Program &program) {
  const ProgramImpl &p = program.impl();
  const uint32_t end = uint32_t(p.strict.size() - 1);
  std::vector<uint32_t> nops;
  // An s_nop that no kernel reaches is padding between kernels.
  std::vector<uint32_t> entries;
  for (const KernelInfo &kernel : p.kernels)
    if (const int32_t entry = p.op_at_address(kernel.entry); entry >= 0) entries.push_back(uint32_t(entry));
  const std::vector<bool> is_reached = reachable(p.strict, p.infos, end, std::move(entries));
  for (uint32_t op = 0; op < end; ++op)
    if (is_reached[op] && p.infos.infos[op].role() == Role::nop) nops.push_back(op);
  const std::vector<uint8_t> needed = needed_wait_states(p.strict, p.infos, end, nops, levels(false));
  std::vector<NopStates> result;
  for (size_t n = 0; n < nops.size(); ++n)
    result.push_back({p.address_of(nops[n]), p.infos.infos[nops[n]].wait_states, needed[n]});
  return result;
}

} // namespace sluice::emulator
