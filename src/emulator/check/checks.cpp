//===- checks.cpp - the checks by name, and which of their reports fail a launch ------------------------===//
#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

#include "emulator/check/report.h"

namespace sluice::emulator {

namespace {

struct CheckName {
  std::string_view name;
  bool Checks::*member;
};
constexpr CheckName checks_table[] = {
    {"pending", &Checks::pending},
    {"lds_races", &Checks::lds_races},
    {"lds_equal_stores", &Checks::lds_equal_stores},
    {"lds_write_after_read", &Checks::lds_write_after_read},
    {"lane_stores", &Checks::lane_stores},
    {"barriers", &Checks::barriers},
    {"divergent_barriers", &Checks::divergent_barriers},
    {"barrier_places", &Checks::barrier_places},
    {"lds_bounds", &Checks::lds_bounds},
    {"global_bounds", &Checks::global_bounds},
    {"uninitialised", &Checks::uninitialised},
    {"registers", &Checks::registers},
    {"exec_at_mfma", &Checks::exec_at_mfma},
    {"global_races", &Checks::global_races},
    {"global_equal_stores", &Checks::global_equal_stores},
    {"stale_caches", &Checks::stale_caches},
    {"stream_races", &Checks::stream_races},
    {"hazards", &Checks::hazards},
    {"hazards_compiler", &Checks::hazards_compiler},
    {"hazards_by_count", &Checks::hazards_by_count},
    {"hazards_waived", &Checks::hazards_waived},
    {"contents", &Checks::contents},
    {"buffer_range", &Checks::buffer_range},
    {"leaks", &Checks::leaks},
    {"ignored_errors", &Checks::ignored_errors},
    {"unwritten_copies", &Checks::unwritten_copies},
};

std::string names_text() {
  std::string text;
  for (const CheckName &check : checks_table)
    text += (text.empty() ? "" : ", ") + std::string(check.name);
  return text;
}

/// Turns on the checks of a list and all others off. `also` names the other values that the text may have.
Checks parse_list(std::string_view text, const char *also) {
  Checks checks = Checks::none();
  while (true) {
    const size_t comma = std::min(text.find(','), text.size());
    const std::string_view name = text.substr(0, comma);
    bool *const check = check_by_name(checks, name);
    if (!check)
      throw std::invalid_argument("unknown check '" + std::string(name) + "'; it must be " + also +
                                  " or a list of " + names_text());
    *check = true;
    if (comma == text.size()) return checks;
    text.remove_prefix(comma + 1);
  }
}

/// The check whose reports are always errors: memory has refused the access, regardless of the settings.
constexpr bool Checks::*never_warns = &Checks::global_bounds;

/// The check that finds reports of a kind; null if the kind is always an error.
bool Checks::*check_of(ReportKind kind, HazardLevel level) {
  switch (kind) {
  case ReportKind::launch_refused:
  case ReportKind::not_emulated:
  case ReportKind::unknown_instruction:
  case ReportKind::invalid_pc:
  case ReportKind::budget_exhausted:
  case ReportKind::trap:
  case ReportKind::barrier_deadlock:
  case ReportKind::misaligned:
    return nullptr;
  case ReportKind::global_out_of_bounds:
  case ReportKind::global_freed:
  case ReportKind::no_peer_access:
  case ReportKind::scratch_out_of_bounds:
  case ReportKind::global_read_only:
    return &Checks::global_bounds;
  case ReportKind::pending_register:
    return &Checks::pending;
  case ReportKind::lds_race:
  case ReportKind::lds_copy_at_end:
    return &Checks::lds_races;
  case ReportKind::lds_equal_stores:
    return &Checks::lds_equal_stores;
  case ReportKind::lds_write_after_read:
    return &Checks::lds_write_after_read;
  case ReportKind::lanes_store_different:
    return &Checks::lane_stores;
  case ReportKind::barrier_mismatch:
    return &Checks::barriers;
  case ReportKind::barrier_divergent:
    return &Checks::divergent_barriers;
  case ReportKind::barrier_places:
    return &Checks::barrier_places;
  case ReportKind::lds_out_of_bounds:
    return &Checks::lds_bounds;
  case ReportKind::lds_uninitialised:
  case ReportKind::memory_uninitialised:
  case ReportKind::register_uninitialised:
    return &Checks::uninitialised;
  case ReportKind::buffer_out_of_range:
    return &Checks::buffer_range;
  case ReportKind::global_race:
    return &Checks::global_races;
  case ReportKind::global_equal_stores:
    return &Checks::global_equal_stores;
  case ReportKind::stale_cache:
    return &Checks::stale_caches;
  case ReportKind::register_out_of_range:
    return &Checks::registers;
  case ReportKind::exec_at_mfma:
    return &Checks::exec_at_mfma;
  case ReportKind::stream_race:
  case ReportKind::freed_in_use:
    return &Checks::stream_races;
  case ReportKind::bad_contents:
    return &Checks::contents;
  case ReportKind::memory_leak:
    return &Checks::leaks;
  case ReportKind::error_ignored:
    return &Checks::ignored_errors;
  case ReportKind::copy_uninitialised:
    return &Checks::unwritten_copies;
  case ReportKind::hazard:
    switch (level) {
    case HazardLevel::required:
      return &Checks::hazards;
    case HazardLevel::compiler:
      return &Checks::hazards_compiler;
    case HazardLevel::by_count:
      return &Checks::hazards_by_count;
    case HazardLevel::waived:
      return &Checks::hazards_waived;
    }
  }
  return nullptr;
}

/// "all" that may warn, "none", or a list of such checks; `refusal` says why not all may.
Checks parse_lenient(std::string_view text, const char *also, const char *refusal) {
  if (text == "none") return Checks::none();
  if (text != "all") {
    const Checks checks = parse_list(text, also);
    if (checks.*never_warns) throw std::invalid_argument(refusal);
    return checks;
  }
  Checks checks;
  for (const CheckName &check : checks_table)
    checks.*check.member = check.member != never_warns;
  return checks;
}

} // namespace

std::span<const std::string_view> check_names() {
  static const std::vector<std::string_view> names = [] {
    std::vector<std::string_view> result;
    for (const CheckName &check : checks_table)
      result.push_back(check.name);
    return result;
  }();
  return names;
}

bool *check_by_name(Checks &checks, std::string_view name) {
  for (const CheckName &check : checks_table)
    if (check.name == name) return &(checks.*check.member);
  return nullptr;
}

Checks parse_checks(std::string_view text) {
  if (text == "all") return Checks::all();
  if (text == "none") return Checks::none();
  return parse_list(text, "all, none");
}

bool may_warn(std::string_view check) {
  const auto entry = std::ranges::find(checks_table, check, &CheckName::name);
  return entry != std::end(checks_table) && entry->member != never_warns;
}

Checks parse_warnings(std::string_view text) {
  if (text == "default") return Checks::warned_of();
  return parse_lenient(text, "default, all, none",
                       "global_bounds cannot be a warning: an access that memory refuses is always an error");
}

Checks parse_tolerated(std::string_view text) {
  if (text == "findings") return Checks::findings();
  return parse_lenient(text, "findings, all, none",
                       "global_bounds cannot be tolerated: an access that memory refuses fails its launch");
}

bool report_fails(ReportKind kind, HazardLevel level, const Checks &warnings) {
  bool Checks::*const check = check_of(kind, level);
  return check == nullptr || check == never_warns || !(warnings.*check);
}

bool ends_launch(ReportKind kind) {
  return check_of(kind, HazardLevel::required) == nullptr && kind != ReportKind::misaligned;
}

Consequence consequence_of(ReportKind kind, HazardLevel level, const CheckOptions &options) {
  const bool error = report_fails(kind, level, options.warnings);
  const bool fails = error && report_fails(kind, level, options.tolerated);
  return {fails, error && !fails};
}

} // namespace sluice::emulator
