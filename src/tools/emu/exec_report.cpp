//===- exec_report.cpp - what a program's launches have reported, as text and JSON ----------------------===//
#include "tools/emu/exec_report.h"

#include "tools/emu/counted.h"
#include "tools/shared/tool_error.h"

#include <charconv>
#include <fmt/format.h>
#include <iterator>
#include <nlohmann/json.hpp>

namespace sluice::tools::emu {

namespace {

using emulator::Report;
using nlohmann::ordered_json;

struct NamedFormat {
  std::string_view name;
  ExecFormat write;
};
constexpr NamedFormat formats[] = {
    {"text", exec_text}, {"json", exec_json}, {"junit", exec_junit}, {"sarif", exec_sarif}};

/// Where a report is, in a few words.
std::string short_place(const Report &report) {
  const SourcePlace place = source_place(report.source);
  if (place.line != 0) return fmt::format("{} at {}:{}", report.kernel, place.file, place.line);
  return report.disassembly.empty() ? report.kernel : fmt::format("{} at {:#x}", report.kernel, report.pc);
}

/// One line for each place, those of a kind together.
std::string summary(const std::vector<Report> &reports) {
  std::map<std::string, std::vector<const Report *>> kinds;
  for (const Report &report : reports)
    kinds[emulator::kind_text(report)].push_back(&report);
  std::string text = "summary:\n";
  for (const auto &[kind, places] : kinds)
    for (const Report *report : places)
      fmt::format_to(std::back_inserter(text), "  {:<26} {:>11}  {}\n", kind, counted(report->count, "time"),
                     short_place(*report));
  return text;
}

std::string kernels_text(const ExecResults &results) {
  const std::string text = counted(results.launches, "launch", "launches");
  return results.unchecked == 0 ? text : fmt::format("{}, {} of them unchecked", text, results.unchecked);
}

uint64_t suppressed_findings(const ExecResults &results) {
  uint64_t sum = 0;
  for (const auto &[line, count] : results.suppressed)
    sum += count;
  return sum;
}

} // namespace

SourcePlace source_place(std::string_view source) {
  const std::string_view first = source.substr(0, source.find(", inlined at "));
  const size_t colon = first.rfind(':');
  SourcePlace place;
  if (colon == std::string_view::npos) return place;
  const std::string_view number = first.substr(colon + 1);
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), place.line);
  if (error != std::errc() || end != number.data() + number.size()) return {};
  const std::string_view before = first.substr(0, colon);
  const size_t function = before.find(", ");
  place.file = before.substr(function == std::string_view::npos ? 0 : function + 2);
  return place;
}

std::string exec_text(const ExecRun &run) {
  const ExecResults &results = run.results;
  std::string text;
  for (const Report &report : results.reports)
    text += emulator::to_text(report) + "\n";
  if (!results.reports.empty()) text += summary(results.reports);
  if (run.options.fidelity) text += emulator::to_text(results.fidelity);
  const uint64_t notes = results.count("note");
  const std::string dropped = results.reports_dropped == 0
                                  ? ""
                                  : fmt::format("; --max-reports leaves out others, which occurred {}",
                                                counted(results.reports_dropped, "time"));
  const std::string suppressed =
      results.suppressed.empty()
          ? ""
          : fmt::format("; {} suppressed", counted(suppressed_findings(results), "finding"));
  fmt::format_to(std::back_inserter(text), "sluice-emu: {}, {}, {}, {}, {}; {}{}{}{}\n",
                 kernels_text(results), counted(results.workgroups, "workgroup"),
                 counted(results.waves, "wave"), counted(results.wave_instructions, "instruction"),
                 counted(results.mfma_instructions, "MFMA"),
                 results.clean() ? "nothing to report"
                                 : reports_text(results.reports.size() - notes, results.count("warning")),
                 notes == 0 ? "" : fmt::format(", {}", counted(notes, "note")), dropped, suppressed);
  return text;
}

std::string exec_json(const ExecRun &run) {
  const ExecResults &results = run.results;
  ordered_json suppressed = ordered_json::array();
  for (const auto &[line, count] : results.suppressed)
    suppressed.push_back({{"line", line}, {"count", count}});
  ordered_json json = {
      {"program", run.options.program},
      {"status", run.status},
      {"launches", results.launches},
      {"launches_unchecked", results.unchecked},
      {"clean", results.clean()},
      {"failed", results.failed()},
      {"counters",
       {{"workgroups", results.workgroups},
        {"waves", results.waves},
        {"wave_instructions", results.wave_instructions},
        {"mfma_instructions", results.mfma_instructions}}},
      {"reports", ordered_json::parse(emulator::to_json(results.reports))},
      {"reports_dropped", results.reports_dropped},
      {"suppressed", suppressed},
  };
  if (run.options.fidelity) json["fidelity"] = ordered_json::parse(emulator::to_json(results.fidelity));
  return json.dump(2) + "\n";
}

std::pair<ExecFormat, std::string> parse_report_option(std::string_view text) {
  const size_t colon = text.find(':');
  std::string names;
  for (const NamedFormat &format : formats) {
    if (colon != std::string_view::npos && text.substr(0, colon) == format.name)
      return {format.write, std::string(text.substr(colon + 1))};
    names += fmt::format("{}{}", names.empty() ? "" : ", ", format.name);
  }
  throw ToolError(
      fmt::format("--report is '{}'; it must be FORMAT:FILE, with one of the formats {}", text, names));
}

} // namespace sluice::tools::emu
