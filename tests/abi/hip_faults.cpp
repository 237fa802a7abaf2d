//===- hip_faults.cpp - every HIP call of every function fails once -------------------------------------===//
//
// usage: abi_hip_faults    prints the outcomes as a table; the complaints of a check go to stderr and make
// the program fail
//
// The library runs on the emulator through a table in which each call fails in turn, by number, with one
// error after another. Each time, the test checks that status, error struct and message agree and name
// the call; that only releasing functions of HIP are called after a failure; that the same call succeeds once
// HIP works again, with the right result; and that nothing that the library made is left in the end.
//
//===----------------------------------------------------------------------------------------------------===//
#include "hip_fault_subjects.h"

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

using namespace sluice::test;

namespace {

constexpr int no_binary_for_gpu = 209, no_device = 100;
constexpr int invalid_value = 1, out_of_memory = 2;
constexpr int sticky_error = 719; // hipErrorLaunchFailure

struct Error : sluice_error {
  Error() { sluice_error_init(this, sizeof(sluice_error)); }
};

/// Entry points that have failed.
std::set<std::string> tried_entries;

std::vector<std::string> log_lines;

struct Function {
  const char *name;
  std::shared_ptr<Subject> (*make)();
  bool is_same_again = false; // a call changes nothing in its subject: one subject is enough
};
template <typename Kind> std::shared_ptr<Subject> make_subject() {
  return std::make_shared<Kind>();
}
const Function functions[] = {
    {"sluice_context_create", make_subject<CreateContext>},
    {"sluice_attention_preload", make_subject<Preload>},
    {"sluice_attention_plan", make_subject<CreatePlan>},
    {"sluice_attention_run, one launch", make_subject<Run<CallKind::dense>>, true},
    {"sluice_attention_run, paged", make_subject<Run<CallKind::paged>>, true},
    {"sluice_attention_run, three launches", make_subject<Run<CallKind::split>>, true},
    {"sluice_cache_append, the first", make_subject<Append>},
    {"sluice_cache_copy, the first", make_subject<Copy>},
    {"sluice_cache_gather, the first", make_subject<Gather>},
    {"sluice_attention_merge, the first", make_subject<Merge>},
    {"sluice_plan_destroy, the last", make_subject<Destroy>},
};

/// Objects that exist and may have been leaked. Looking makes the thread's own device current.
struct Live {
  size_t modules = FaultyHip::live_modules();
  uint64_t streams = emulator_counters().live_streams, events = emulator_counters().live_events;
  size_t free_bytes = 0;
  Live() {
    for (const int device : {context_device, 0}) {
      size_t free_there = 0, total = 0;
      set_device(device);
      hip_call<size_t *, size_t *>("hipMemGetInfo", &free_there, &total);
      free_bytes += free_there;
    }
  }
  bool operator==(const Live &) const = default;
};

struct Outcome {
  sluice_status status = SLUICE_OK;
  std::string field;
  bool is_logged = false;
  uint64_t launches = 0;
  bool operator==(const Outcome &) const = default;
};

/// Checks the error of a call that failed because of HIP.
void check_error(sluice_status status, const Error &error, const std::string &call, int code) {
  std::string name = reinterpret_cast<const char *(*)(int)>(sluice_emulator_symbol("hipGetErrorName"))(code);
  expect(error.code == status, "error.code is not the status");
  expect(error.hip_code == code, "error.hip_code is " + std::to_string(error.hip_code));
  const std::string message = error.message;
  expect(message.find(call) != message.npos, "the message names no " + call + ": " + message);
  expect(message.find(std::to_string(code)) != message.npos, "the message has no code: " + message);
  if (status != SLUICE_NO_DEVICE)
    expect(message.find(name) != message.npos, "the message has no " + name + ": " + message);
}

/// HIP functions that the library may still call after a failure: those that restore or release.
bool puts_back(const std::string &call) {
  return call == "hipModuleUnload" || call == "hipSetDevice";
}

/// `forgiven`: the failure of this HIP call does not make the function fail.
Outcome outcome_of(const Function &function, size_t at, int code, bool sticks, bool forgiven,
                   const std::vector<unsigned char> &good_result, const std::shared_ptr<Subject> &kept) {
  const Live before;
  Outcome outcome;
  {
    FaultyHip::start({});
    const std::shared_ptr<Subject> subject = kept != nullptr ? kept : function.make();
    const int device = dynamic_cast<Enqueues *>(subject.get()) != nullptr ? context_device : 0;
    set_device(device);
    const uint64_t launches_before = emulator_counters().launches;
    log_lines.clear();
    Error error;
    FaultyHip::start({.at = at, .error = code, .sticks = sticks, .optional_too = true});
    outcome.status = subject->act(&error);
    const std::string failed = FaultyHip::failed_call();
    const std::vector<const char *> calls = FaultyHip::calls();
    // A failure that is forgiven and persists is noticed at the next call.
    const size_t noticed = sticks && forgiven ? calls.size() : at;
    if (outcome.status != SLUICE_OK) {
      check_error(outcome.status, error, noticed == at ? failed : "hip", code);
      for (size_t i = noticed + 1; i < calls.size(); ++i)
        expect(puts_back(calls[i]), std::string("after the failure comes ") + calls[i]);
      outcome.field = std::string(error.field).starts_with("attn_") ||
                              std::string(error.field).starts_with("kv_append_") ||
                              std::string(error.field).starts_with("kv_copy_") ||
                              std::string(error.field).starts_with("merge_states_")
                          ? "the kernel's name"
                          : error.field;
    }
    outcome.is_logged = !log_lines.empty();
    if (outcome.is_logged && !sticks)
      expect(log_lines.size() == 1 && log_lines[0].find(failed) != std::string::npos,
             "the log names no " + failed + ": " + log_lines[0]);
    if (sticks) {
      // The context is as dead as its device: every call that needs HIP fails, and says so.
      Error again;
      const sluice_status status = subject->act(&again);
      const bool needs_hip = FaultyHip::call_count() > calls.size();
      if (needs_hip && outcome.status != SLUICE_OK) expect(status != SLUICE_OK, "a dead device computes");
    }
    FaultyHip::start({});
    const std::vector<unsigned char> result = subject->result();
    outcome.launches = emulator_counters().launches - launches_before;
    // A failure to restore the device leaves the thread on the other one.
    set_device(device);
    Error again;
    expect(subject->act(&again) == SLUICE_OK, std::string("not usable afterwards: ") + again.message);
    expect(subject->result() == good_result, "another result afterwards");
  }
  set_device(0);
  expect(Live() == before, "something is left: " + std::to_string(FaultyHip::live_modules()) + " modules");
  return outcome;
}

/// One HIP call, and the results of its failures.
struct Row {
  std::string call, any, no_binary, no_device;
  bool operator==(const Row &) const = default;
};

std::vector<Row> rows_of(const Function &function) {
  situation = function.name;
  FaultyHip::start({});
  const Live before;
  std::shared_ptr<Subject> subject = function.make();
  const bool enqueues = dynamic_cast<Enqueues *>(subject.get()) != nullptr;
  const uint64_t launches_before = emulator_counters().launches;
  FaultyHip::start({.optional_too = true});
  require_ok(subject->act(nullptr), function.name);
  const std::vector<const char *> calls = FaultyHip::calls();
  const std::vector<unsigned char> good_result = subject->result();
  const uint64_t launches = emulator_counters().launches - launches_before;
  if (!function.is_same_again) subject.reset();

  std::vector<Row> rows;
  for (size_t at = 0; at < calls.size(); ++at) {
    const auto try_error = [&](int code, bool sticks = false, bool forgiven = false) {
      situation = std::string(function.name) + ", call " + std::to_string(at) + " " + calls[at] + ", error " +
                  std::to_string(code) + (sticks ? " from then on" : "");
      return outcome_of(function, at, code, sticks, forgiven, good_result, subject);
    };
    const Outcome any = try_error(FaultyHip::error);
    tried_entries.insert(calls[at]);
    expect(try_error(invalid_value) == any, "another outcome than with error 999");
    expect(try_error(out_of_memory) == any, "another outcome than with error 999");
    const bool forgiven = any.status == SLUICE_OK;
    const Outcome sticky = try_error(sticky_error, true, forgiven);
    if (!forgiven)
      expect(sticky.status == any.status && sticky.field == any.field, "another outcome if the error sticks");
    Outcome no_binary = try_error(no_binary_for_gpu), missing = try_error(no_device);
    Row row = {calls[at], sluice_status_name(any.status), sluice_status_name(no_binary.status),
               sluice_status_name(missing.status)};
    if (!any.field.empty()) row.any += ", " + any.field;
    if (any.is_logged) row.any += ", logged";
    if (enqueues)
      row.any += ", " + std::to_string(any.launches) + " of " + std::to_string(launches) + " launches made";
    if (missing.status == SLUICE_NO_DEVICE) {
      row.no_device += ", " + missing.field;
      missing.field = any.field;
    }
    no_binary.status = missing.status = any.status;
    expect(no_binary == any && missing == any, "one code makes another difference than its status");
    if (std::find(rows.begin(), rows.end(), row) == rows.end()) rows.push_back(row);
  }
  expect(!rows.empty(), "makes no HIP call");
  subject.reset();
  situation = function.name;
  expect(Live() == before, "something is left");
  return rows;
}

void print_table() {
  std::printf("| of the library | HIP call that fails | comes to | with hipErrorNoBinaryForGpu | with "
              "hipErrorNoDevice |\n| --- | --- | --- | --- | --- |\n");
  std::vector<std::pair<std::string, std::vector<Row>>> groups; // of functions in which the same happens
  for (const Function &function : functions) {
    std::vector<Row> rows = rows_of(function);
    if (!groups.empty() && groups.back().second == rows)
      groups.back().first += std::string("; ") + function.name;
    else
      groups.emplace_back(function.name, std::move(rows));
  }
  for (const auto &[names, rows] : groups)
    for (const Row &row : rows)
      std::printf("| %s | %s | %s | %s | %s |\n", &row == rows.data() ? names.c_str() : "", row.call.c_str(),
                  row.any.c_str(), row.no_binary.c_str(), row.no_device.c_str());
}

/// Older runtimes give a device's name through another entry point; its failure has the same result.
void check_older_runtimes() {
  const std::vector<Row> newest = rows_of(functions[0]);
  for (const std::string older : {"hipGetDevicePropertiesR0000", "hipGetDeviceProperties"}) {
    missing_entries.insert(older == "hipGetDeviceProperties" ? "hipGetDevicePropertiesR0000"
                                                             : "hipGetDevicePropertiesR0600");
    std::vector<Row> rows = newest;
    for (Row &row : rows)
      if (row.call == "hipGetDevicePropertiesR0600") row.call = older;
    const std::vector<Row> found = rows_of(functions[0]);
    situation = "with " + older;
    expect(found == rows, "another outcome than with hipGetDevicePropertiesR0600");
  }
  missing_entries.clear();
}

/// This program must reach every entry point that is new in the table.
void check_tried(const char *name) {
  situation = name;
  expect(tried_entries.contains(name), "no failure of it was tried");
}

/// Each entry point of the table missing in turn.
void check_missing(const char *name, bool is_required) {
  situation = std::string("without ") + name;
  missing_entries = {name};
  FaultyHip::start({});
  sluice_context_desc desc;
  sluice_context_desc_init(&desc, sizeof desc);
  desc.kind = SLUICE_DEVICE_HIP;
  desc.hip_resolver = resolve_present;
  Error error;
  sluice_context *context = nullptr;
  const sluice_status status = sluice_context_create(&desc, &context, &error);
  expect(status == (is_required ? SLUICE_NO_DEVICE : SLUICE_OK), sluice_status_name(status));
  if (is_required) expect(std::string(error.field) == name, std::string("the field is ") + error.field);
  sluice_context_destroy(context);
}

} // namespace

int main() {
  require_ok(sluice_emulator_configure("devices", "2"), "the second device");
  sluice_set_log([](uint32_t, const char *line, void *) { log_lines.push_back(line); }, nullptr,
                 SLUICE_LOG_ERROR);
  print_table();
  check_older_runtimes();
#define SLUICE_ENTRY(entry, parameters) check_tried(#entry);
  SLUICE_HIP_REQUIRED(SLUICE_ENTRY)
  SLUICE_HIP_OPTIONAL(SLUICE_ENTRY)
#undef SLUICE_ENTRY
#define SLUICE_ENTRY(entry, parameters) check_missing(#entry, true);
  SLUICE_HIP_REQUIRED(SLUICE_ENTRY)
#undef SLUICE_ENTRY
#define SLUICE_ENTRY(entry, parameters) check_missing(#entry, false);
  SLUICE_HIP_OPTIONAL(SLUICE_ENTRY)
#undef SLUICE_ENTRY
  sluice_set_log(nullptr, nullptr, 0);
  if (complaints != 0) std::fprintf(stderr, "%d complaints\n", complaints);
  return complaints != 0;
}
