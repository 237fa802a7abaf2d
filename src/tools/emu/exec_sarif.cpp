//===- exec_sarif.cpp - what a program's launches have reported, as SARIF 2.1.0 -------------------------===//
#include "tools/emu/exec_report.h"

#include <algorithm>
#include <fmt/format.h>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>

namespace sluice::tools::emu {

namespace {

using emulator::Report;
using nlohmann::ordered_json;

/// RFC 3986: of a path's bytes, the unreserved ones and '/' stay as they are.
std::string uri_of(std::string_view path) {
  std::string uri = path.starts_with('/') ? "file://" : "";
  for (const char c : path) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (letter || std::string_view("-._~/").find(c) != std::string_view::npos)
      uri += c;
    else
      fmt::format_to(std::back_inserter(uri), "%{:02X}", uint8_t(c));
  }
  return uri;
}

/// Without the physical location if the source is unknown.
ordered_json location(std::string_view source, const std::string &function, std::string_view message) {
  ordered_json result = ordered_json::object();
  if (const SourcePlace place = source_place(source); place.line != 0)
    result["physicalLocation"] = {{"artifactLocation", {{"uri", uri_of(place.file)}}},
                                  {"region", {{"startLine", place.line}}}};
  if (!function.empty())
    result["logicalLocations"] = ordered_json::array({{{"name", function}, {"kind", "function"}}});
  if (!message.empty()) result["message"] = {{"text", message}};
  return result;
}

ordered_json related_locations(const Report &report) {
  ordered_json locations = ordered_json::array();
  if (report.other)
    locations.push_back(
        location(report.other->source, report.kernel,
                 fmt::format("the other access: {} at {:#x}, wave {}", report.other->disassembly,
                             report.other->pc, report.other->wave)));
  if (!report.launched_by.empty())
    locations.push_back(location(report.launched_by, "", "launched by " + report.launched_by));
  if (!report.allocated_by.empty())
    locations.push_back(location(report.allocated_by, "", "memory of " + report.allocated_by));
  return locations;
}

ordered_json result_of(const Report &report) {
  ordered_json result = {
      {"ruleId", emulator::report_kind_name(report.kind)},
      {"level", emulator::severity_name(report)},
      {"message", {{"text", report.kernel + ": " + report.message}}},
      {"locations", ordered_json::array({location(report.source, report.kernel, "")})},
      {"occurrenceCount", report.count},
  };
  if (ordered_json others = related_locations(report); !others.empty()) result["relatedLocations"] = others;
  ordered_json &properties = result["properties"];
  properties = {{"failsLaunch", report.fails}};
  if (!report.disassembly.empty()) {
    properties["instruction"] = report.disassembly;
    properties["pc"] = report.pc;
    properties["workgroup"] = report.workgroup;
    properties["wave"] = report.wave;
    properties["lane"] = report.lane;
  }
  return result;
}

} // namespace

std::string exec_sarif(const ExecRun &run) {
  std::set<std::string> kinds;
  ordered_json results = ordered_json::array();
  for (const Report &report : run.results.reports) {
    kinds.emplace(emulator::report_kind_name(report.kind));
    results.push_back(result_of(report));
  }
  ordered_json rules = ordered_json::array();
  for (const std::string &kind : kinds)
    rules.push_back({{"id", kind}});
  std::string command;
  for (const std::string &argument : run.options.program)
    command += (command.empty() ? "" : " ") + argument;
  ordered_json sarif = {
      {"$schema", "https://json.schemastore.org/sarif-2.1.0.json"},
      {"version", "2.1.0"},
      {"runs", ordered_json::array({{
                   {"tool", {{"driver", {{"name", "sluice-emu"}, {"rules", rules}}}}},
                   {"invocations", ordered_json::array({{{"commandLine", command},
                                                         {"exitCode", run.status},
                                                         {"executionSuccessful", run.status == 0}}})},
                   {"results", results},
               }})},
  };
  if (run.options.fidelity)
    sarif["runs"][0]["properties"] = {
        {"fidelity", ordered_json::parse(emulator::to_json(run.results.fidelity))}};
  return sarif.dump(2) + "\n";
}

} // namespace sluice::tools::emu
