//===- report_files.cpp - the results of a run, for programs --------------------------------------------===//

#include "conformance/run/report.h"

#include <cstring>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <string_view>
#include <unistd.h>
#include <utility>

namespace sluice::conformance {

namespace {

/// Text that XML can hold, in an attribute or between elements: XML has no control characters, and a device's
/// name may contain anything.
std::string xml(std::string_view text) {
  std::string out;
  for (char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '"')
      out += "&quot;";
    else if (c == '\n' || c == '\t')
      out += fmt::format("&#{};", int(byte));
    else
      out += byte >= 0x20 && byte < 0x7f ? c : '?';
  }
  return out;
}

std::string host_name() {
  char name[256] = {};
  return ::gethostname(name, sizeof name - 1) == 0 ? name : "localhost";
}

std::vector<std::pair<const char *, std::string>> properties(const About &about) {
  return {{"command", about.command},
          {"version", about.version},
          {"git_commit", about.git_commit},
          {"pack_id", about.pack_id},
          {"device", about.device},
          {"chip", about.chip},
          {"arch", about.arch},
          {"device_name", about.device_name},
          {"compute_units", std::to_string(about.compute_units)},
          {"runtime", about.runtime},
          {"runtime_version", std::to_string(about.runtime_version)},
          {"seed", std::to_string(about.seed)}};
}

std::string first_line(const std::string &text) {
  return text.substr(0, text.find('\n'));
}

std::string junit_case(const Result &result) {
  std::string text = fmt::format("    <testcase classname=\"sluice.conformance\" name=\"{}\" time=\"{:.6f}\"",
                                 xml(result.name), result.seconds);
  switch (result.outcome) {
  case Outcome::passed:
    return text + "/>\n";
  case Outcome::failed:
    return text + fmt::format(">\n      <failure type=\"{}\" message=\"{}\">{}&#10;reproduce: {}</failure>\n"
                              "    </testcase>\n",
                              result.refused_field.empty() ? "failed" : "refused",
                              xml(first_line(result.reason)), xml(result.reason), xml(result.reproduce));
  case Outcome::refused:
  case Outcome::skipped:
    break;
  }
  return text + fmt::format(">\n      <skipped message=\"{}: {}\"/>\n    </testcase>\n",
                            outcome_name(result.outcome), xml(result.reason));
}

} // namespace

std::string junit_text(const Report &report) {
  const size_t failed = report.count(Outcome::failed);
  const size_t skipped = report.count(Outcome::refused) + report.count(Outcome::skipped);
  std::string text = fmt::format("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
                                 "<testsuites name=\"sluice-conformance\" tests=\"{0}\" failures=\"{1}\" "
                                 "errors=\"0\" time=\"{3:.6f}\">\n"
                                 "  <testsuite name=\"sluice-conformance on {4}\" tests=\"{0}\" "
                                 "failures=\"{1}\" errors=\"0\" skipped=\"{2}\" "
                                 "time=\"{3:.6f}\" timestamp=\"{5}\" hostname=\"{6}\">\n"
                                 "    <properties>\n",
                                 report.results.size(), failed, skipped, report.seconds,
                                 xml(report.about.device), xml(report.started), xml(host_name()));
  for (const auto &[name, value] : properties(report.about))
    text += fmt::format("      <property name=\"{}\" value=\"{}\"/>\n", name, xml(value));
  text += "    </properties>\n";
  for (const Result &result : report.results)
    text += junit_case(result);
  return text +
         fmt::format("    <system-out>{}</system-out>\n  </testsuite>\n</testsuites>\n", xml(report.summary));
}

std::string json_text(const Report &report) {
  const About &about = report.about;
  nlohmann::ordered_json out;
  out["format"] = "sluice-conformance";
  out["format_version"] = 1;
  out["command"] = about.command;
  out["started"] = report.started;
  out["seconds"] = report.seconds;
  out["library"] = {{"version", about.version}, {"git_commit", about.git_commit}, {"pack_id", about.pack_id}};
  out["device"] = {{"asked_for", about.device},
                   {"chip", about.chip},
                   {"arch", about.arch},
                   {"name", about.device_name},
                   {"compute_units", about.compute_units},
                   {"runtime", about.runtime},
                   {"runtime_version", about.runtime_version}};
  out["seed"] = about.seed;
  out["summary"] = report.summary;
  for (Outcome outcome : {Outcome::passed, Outcome::failed, Outcome::refused, Outcome::skipped})
    out["counts"][outcome_name(outcome)] = report.count(outcome);
  out["cases"] = nlohmann::ordered_json::array();
  for (const Result &result : report.results) {
    nlohmann::ordered_json one = {
        {"name", result.name}, {"outcome", outcome_name(result.outcome)}, {"seconds", result.seconds}};
    if (!result.kernel.empty()) {
      one["kernel"] = result.kernel;
      one["o_error_in_tolerances"] = result.o_ratio;
      one["lse_error_in_tolerances"] = result.lse_ratio;
    }
    if (!result.reason.empty()) one["reason"] = result.reason;
    if (!result.refused_field.empty()) one["refused_field"] = result.refused_field;
    if (result.outcome == Outcome::failed) one["reproduce"] = result.reproduce;
    out["cases"].push_back(std::move(one));
  }
  return out.dump(1, ' ', true, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

} // namespace sluice::conformance
