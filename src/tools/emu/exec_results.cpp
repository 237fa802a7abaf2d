//===- exec_results.cpp - what a program's launches have reported ---------------------------------------===//
#include "tools/emu/exec_results.h"

#include "tools/emu/fidelity_json.h"
#include "tools/shared/tool_error.h"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <tuple>

namespace sluice::tools::emu {

namespace {

using emulator::Report;
using nlohmann::json;

Report read_report(const json &text) {
  Report report;
  report.kind = emulator::report_kind_by_name(text.at("kind").get<std::string>()).value();
  if (text.contains("level"))
    report.level = emulator::hazard_level_by_name(text.at("level").get<std::string>()).value();
  report.fails = text.at("fails");
  report.goes_on = !report.fails && text.at("severity") == "error";
  report.kernel = text.at("kernel");
  report.message = text.at("message");
  report.pc = text.at("pc");
  report.disassembly = text.at("disassembly");
  report.source = text.at("source");
  report.workgroup = text.at("workgroup");
  report.wave = text.at("wave");
  report.lane = text.at("lane");
  report.address = text.at("address");
  report.count = text.at("count");
  report.launched_by = text.value("launched_by", "");
  report.allocated_by = text.value("allocated_by", "");
  report.suppressed = text.value("suppressed", 0u);
  if (text.contains("other")) {
    const json &other = text.at("other");
    report.other =
        Report::Other{other.at("pc"), other.at("disassembly"), other.at("wave"), other.at("source")};
  }
  return report;
}

/// Reports of one mistake, in several launches or processes: the same instructions or, without an
/// instruction, the same words.
using Mistake = std::tuple<emulator::ReportKind, emulator::HazardLevel, bool, bool, std::string, uint64_t,
                           uint64_t, std::string>;
Mistake mistake_of(const Report &report) {
  return {report.kind,
          report.level,
          report.fails,
          report.goes_on,
          report.kernel,
          report.pc,
          report.other ? report.other->pc : 0,
          report.disassembly.empty() ? report.message : report.disassembly};
}

} // namespace

uint64_t ExecResults::count(std::string_view severity) const {
  return uint64_t(std::ranges::count(reports, severity, emulator::severity_name));
}

ExecResults read_results(const std::string &path) {
  ExecResults results;
  std::map<Mistake, size_t> known;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) { // of a launch, or of a report that belongs to no launch
    const json launch = json::parse(line, nullptr, false);
    if (launch.is_discarded()) throw ToolError("the program's reports are cut short: is the disk full?");
    const json &counters = launch.at("counters");
    const auto launches = counters.at("launches").get<uint64_t>();
    results.launches += launches;
    results.workgroups += counters.at("workgroups").get<uint64_t>();
    results.waves += counters.at("waves").get<uint64_t>();
    results.wave_instructions += counters.at("wave_instructions").get<uint64_t>();
    results.mfma_instructions += counters.at("mfma_instructions").get<uint64_t>();
    results.reports_dropped += launch.at("reports_dropped").get<uint64_t>();
    const auto kernel = launch.at("kernel").get<std::string>();
    if (!launch.at("checked").get<bool>()) {
      results.unchecked += launches;
      results.unchecked_kernels.insert(kernel);
    } else if (!kernel.empty()) {
      results.kernels[kernel] += 1;
    }
    if (launch.contains("fidelity")) results.fidelity += read_fidelity_note(launch.at("fidelity"));
    for (const json &text : launch.at("reports")) {
      Report report = read_report(text);
      if (report.suppressed != 0) {
        results.suppressed[report.suppressed] += report.count;
        continue;
      }
      const auto [place, is_new] = known.try_emplace(mistake_of(report), results.reports.size());
      if (is_new)
        results.reports.push_back(std::move(report));
      else
        results.reports[place->second].count += report.count;
    }
  }
  return results;
}

} // namespace sluice::tools::emu
