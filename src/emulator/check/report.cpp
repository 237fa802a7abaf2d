//===- report.cpp - names, text and JSON of reports -----------------------------------------------------===//
#include "emulator/check/report.h"

#include <algorithm>
#include <cstdio>
#include <vector>

#include "support/hex.h"

namespace sluice::emulator {

void append_json_string(std::string &out, std::string_view text) {
  out += '"';
  for (char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (uint8_t(c) < 0x20) {
      char escaped[8];
      std::snprintf(escaped, sizeof escaped, "\\u%04x", unsigned(uint8_t(c)));
      out += escaped;
    } else {
      out += c;
    }
  }
  out += '"';
}

namespace {

void append_optional(std::string &out, std::string_view name, std::string_view text) {
  if (text.empty()) return;
  out += ", \"" + std::string(name) + "\": ";
  append_json_string(out, text);
}

std::string workgroup_text(const Report &report) {
  return std::to_string(report.workgroup[0]) + "," + std::to_string(report.workgroup[1]) + "," +
         std::to_string(report.workgroup[2]);
}

std::string source_text(const std::string &source) {
  return source.empty() ? "" : "\n               " + source;
}

std::string host_text(const Report &report) {
  return (report.launched_by.empty() ? "" : "\n  launched by  " + report.launched_by) +
         (report.allocated_by.empty() ? "" : "\n  memory of    " + report.allocated_by);
}

} // namespace

bool is_note(ReportKind kind) {
  return kind == ReportKind::memory_leak || kind == ReportKind::error_ignored ||
         kind == ReportKind::copy_uninitialised || kind == ReportKind::lds_equal_stores ||
         kind == ReportKind::global_equal_stores;
}

std::string_view report_kind_name(ReportKind kind) {
  switch (kind) {
  case ReportKind::launch_refused:
    return "launch_refused";
  case ReportKind::not_emulated:
    return "not_emulated";
  case ReportKind::unknown_instruction:
    return "unknown_instruction";
  case ReportKind::invalid_pc:
    return "invalid_pc";
  case ReportKind::budget_exhausted:
    return "budget_exhausted";
  case ReportKind::trap:
    return "trap";
  case ReportKind::barrier_deadlock:
    return "barrier_deadlock";
  case ReportKind::pending_register:
    return "pending_register";
  case ReportKind::lds_race:
    return "lds_race";
  case ReportKind::lds_equal_stores:
    return "lds_equal_stores";
  case ReportKind::lds_write_after_read:
    return "lds_write_after_read";
  case ReportKind::lanes_store_different:
    return "lanes_store_different";
  case ReportKind::barrier_mismatch:
    return "barrier_mismatch";
  case ReportKind::barrier_divergent:
    return "barrier_divergent";
  case ReportKind::barrier_places:
    return "barrier_places";
  case ReportKind::lds_out_of_bounds:
    return "lds_out_of_bounds";
  case ReportKind::lds_uninitialised:
    return "lds_uninitialised";
  case ReportKind::lds_copy_at_end:
    return "lds_copy_at_end";
  case ReportKind::global_race:
    return "global_race";
  case ReportKind::global_equal_stores:
    return "global_equal_stores";
  case ReportKind::stale_cache:
    return "stale_cache";
  case ReportKind::memory_uninitialised:
    return "memory_uninitialised";
  case ReportKind::global_out_of_bounds:
    return "global_out_of_bounds";
  case ReportKind::global_freed:
    return "global_freed";
  case ReportKind::no_peer_access:
    return "no_peer_access";
  case ReportKind::scratch_out_of_bounds:
    return "scratch_out_of_bounds";
  case ReportKind::buffer_out_of_range:
    return "buffer_out_of_range";
  case ReportKind::global_read_only:
    return "global_read_only";
  case ReportKind::misaligned:
    return "misaligned";
  case ReportKind::register_out_of_range:
    return "register_out_of_range";
  case ReportKind::register_uninitialised:
    return "register_uninitialised";
  case ReportKind::exec_at_mfma:
    return "exec_at_mfma";
  case ReportKind::stream_race:
    return "stream_race";
  case ReportKind::freed_in_use:
    return "freed_in_use";
  case ReportKind::memory_leak:
    return "memory_leak";
  case ReportKind::error_ignored:
    return "error_ignored";
  case ReportKind::copy_uninitialised:
    return "copy_uninitialised";
  case ReportKind::bad_contents:
    return "bad_contents";
  case ReportKind::hazard:
    return "hazard";
  }
  return "unknown";
}

std::string_view hazard_level_name(HazardLevel level) {
  switch (level) {
  case HazardLevel::required:
    return "required";
  case HazardLevel::compiler:
    return "compiler";
  case HazardLevel::by_count:
    return "by_count";
  case HazardLevel::waived:
    return "waived";
  }
  return "unknown";
}

std::optional<ReportKind> report_kind_by_name(std::string_view name) {
  const std::span<const std::string_view> names = report_kind_names();
  const auto found = std::ranges::find(names, name);
  if (found == names.end()) return std::nullopt;
  return ReportKind(found - names.begin());
}

std::span<const std::string_view> report_kind_names() {
  static const std::vector<std::string_view> names = [] {
    std::vector<std::string_view> all;
    while (report_kind_name(ReportKind(all.size())) != "unknown")
      all.push_back(report_kind_name(ReportKind(all.size())));
    return all;
  }();
  return names;
}

std::optional<HazardLevel> hazard_level_by_name(std::string_view name) {
  for (uint8_t level = 0; level < hazard_levels; ++level)
    if (hazard_level_name(HazardLevel(level)) == name) return HazardLevel(level);
  return std::nullopt;
}

std::string_view severity_name(const Report &report) {
  return report.is_error() ? "error" : is_note(report.kind) ? "note" : "warning";
}

std::string kind_text(const Report &report) {
  std::string text = report.is_error() ? "" : std::string(severity_name(report)) + ": ";
  text += report_kind_name(report.kind);
  if (report.kind == ReportKind::hazard) text += " (" + std::string(hazard_level_name(report.level)) + ")";
  return text;
}

std::string to_text(const Report &report) {
  if (report.disassembly.empty()) { // reports about copies, streams and whole launches have no instruction
    const std::string times =
        report.count > 1 ? " (and " + std::to_string(report.count - 1) + " times more)" : "";
    return report.kernel + ": " + kind_text(report) + ": " + report.message +
           (report.address != 0 ? ", at " + support::hex(report.address) : "") + times + host_text(report) +
           "\n";
  }
  std::string text = report.kernel + " at " + support::hex(report.pc) + ": " + kind_text(report) + ": " +
                     report.message + "\n  instruction  " + report.disassembly + source_text(report.source) +
                     "\n  where        workgroup " + workgroup_text(report) + ", wave " +
                     std::to_string(report.wave);
  if (report.lane >= 0) text += ", lane " + std::to_string(report.lane);
  if (report.count > 1) text += " (and " + std::to_string(report.count - 1) + " times more)";
  if (report.other)
    text += "\n  other        " + support::hex(report.other->pc) + ": " + report.other->disassembly +
            ", wave " + std::to_string(report.other->wave) + source_text(report.other->source);
  return text + host_text(report) + "\n";
}

std::string to_json(std::span<const Report> reports) {
  std::string out = "[";
  for (const Report &report : reports) {
    if (out.size() > 1) out += ",";
    out += "\n  {\"kind\": ";
    append_json_string(out, report_kind_name(report.kind));
    out += ", \"kernel\": ";
    append_json_string(out, report.kernel);
    out += ", \"message\": ";
    append_json_string(out, report.message);
    out += ", \"pc\": " + std::to_string(report.pc) + ", \"disassembly\": ";
    append_json_string(out, report.disassembly);
    out += ", \"source\": ";
    append_json_string(out, report.source);
    out += ", \"workgroup\": [" + workgroup_text(report) + "], \"wave\": " + std::to_string(report.wave) +
           ", \"lane\": " + std::to_string(report.lane) + ", \"address\": " + std::to_string(report.address) +
           ", \"count\": " + std::to_string(report.count);
    out += report.fails ? ", \"fails\": true" : ", \"fails\": false";
    out += ", \"severity\": \"" + std::string(severity_name(report)) + "\"";
    if (report.kind == ReportKind::hazard) {
      out += ", \"level\": ";
      append_json_string(out, hazard_level_name(report.level));
    }
    append_optional(out, "launched_by", report.launched_by);
    append_optional(out, "allocated_by", report.allocated_by);
    if (report.suppressed != 0) out += ", \"suppressed\": " + std::to_string(report.suppressed);
    if (report.other) {
      out += ", \"other\": {\"pc\": " + std::to_string(report.other->pc) + ", \"disassembly\": ";
      append_json_string(out, report.other->disassembly);
      out += ", \"source\": ";
      append_json_string(out, report.other->source);
      out += ", \"wave\": " + std::to_string(report.other->wave) + "}";
    }
    out += "}";
  }
  return out + (reports.empty() ? "]" : "\n]");
}

} // namespace sluice::emulator
