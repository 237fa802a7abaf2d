//===- device.cpp - the emulated GPUs of the process ----------------------------------------------------===//
//
// Settings are taken as text, so that command lines and tests can pass them through unparsed.
//
//===----------------------------------------------------------------------------------------------------===//
#include "emulator/hip/device.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <limits>
#include <optional>
#include <stdexcept>

#include "emulator/hip/error.h"
#include "emulator/hip/program_end.h"
#include "emulator/hip/scheduler.h"
#include "emulator/hip/streams.h"
#include "emulator/hip/thread_state.h"

namespace sluice::emulator::hip {

namespace {

// Reports kept until they are taken, for each kind, and for each rule and level of hazards.
constexpr ptrdiff_t most_reports = 1024;

bool same_kind(const Report &one, const Report &other) {
  return one.kind == other.kind && one.level == other.level && one.rule == other.rule &&
         one.fails == other.fails && one.goes_on == other.goes_on;
}
/// The same mistake: at the same pair of instructions or, for copies and streams, with the same words.
bool same_mistake(const Report &one, const Report &other) {
  if (!same_kind(one, other) || one.kernel != other.kernel || one.disassembly != other.disassembly)
    return false;
  if (one.disassembly.empty()) return one.message == other.message;
  return one.pc == other.pc && one.other.has_value() == other.other.has_value() &&
         (!one.other || one.other->pc == other.other->pc);
}

std::optional<bool> parse_switch(std::string_view value) {
  if (value == "on" || value == "1" || value == "true") return true;
  if (value == "off" || value == "0" || value == "false") return false;
  return std::nullopt;
}

template <typename Number> bool parse_number(std::string_view value, Number &out) {
  Number number{};
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error != std::errc() || end != value.data() + value.size()) return false;
  out = number;
  return true;
}

/// Sets whether a check is on, and whether its findings are warnings or errors.
bool configure_check(Options &options, std::string_view name, std::string_view value) {
  bool &check = *check_by_name(options.checks, name);
  if (const std::optional<bool> on = parse_switch(value)) {
    check = *on;
    return true;
  }
  const bool warns = value == "report";
  if ((!warns && value != "fault") || (warns && !may_warn(name))) return false;
  check = true;
  *check_by_name(options.warnings, name) = warns;
  return true;
}

/// Sets `list` to what `parse` returns; false if it refuses the text.
bool configure_list(Checks &list, Checks (*parse)(std::string_view), std::string_view value) {
  try {
    list = parse(value);
    return true;
  } catch (const std::invalid_argument &) {
    return false;
  }
}

/// False if the file cannot be read or is no list of rules.
bool read_suppressions(Options &options, const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  try {
    options.suppressions = std::make_shared<const Suppressions>(text);
    return true;
  } catch (const std::invalid_argument &) {
    return false;
  }
}

bool configure_option(Options &options, std::string_view key, std::string_view value, bool &known) {
  known = true;
  if (check_by_name(options.checks, key)) return configure_check(options, key, value);
  if (key == "checks") return configure_list(options.checks, parse_checks, value);
  if (key == "warnings") return configure_list(options.warnings, parse_warnings, value);
  if (key == "tolerated") return configure_list(options.tolerated, parse_tolerated, value);
  if (key == "completion") {
    if (value == "late") return options.completion = CompletionOrder::late, true;
    if (value == "early") return options.completion = CompletionOrder::early, true;
    if (value == "random") return options.completion = CompletionOrder::random, true;
    return false;
  }
  if (key == "wave_schedule") {
    if (value == "greedy") return options.wave_schedule = WaveSchedule::greedy, true;
    if (value == "round_robin") return options.wave_schedule = WaveSchedule::round_robin, true;
    if (value == "random") return options.wave_schedule = WaveSchedule::random, true;
    return false;
  }
  if (key == "workgroup_schedule") {
    if (value == "ascending") return options.workgroup_schedule = WorkgroupSchedule::ascending, true;
    if (value == "descending") return options.workgroup_schedule = WorkgroupSchedule::descending, true;
    if (value == "by_xcd") return options.workgroup_schedule = WorkgroupSchedule::by_xcd, true;
    if (value == "random") return options.workgroup_schedule = WorkgroupSchedule::random, true;
    return false;
  }
  struct Switch {
    std::string_view key;
    bool &option;
  };
  for (const Switch &entry : {Switch{"count_bank_conflicts", options.count_bank_conflicts},
                              Switch{"perturb_transcendentals", options.perturb_transcendentals},
                              Switch{"preload_kernargs", options.preload_kernargs},
                              Switch{"scramble_nans", options.scramble_nans}}) {
    if (entry.key != key) continue;
    const std::optional<bool> on = parse_switch(value);
    if (on) entry.option = *on;
    return on.has_value();
  }
  if (key == "fidelity") {
    const std::optional<bool> on = parse_switch(value);
    if (on) options.fidelity = *on ? std::make_shared<InexactMemory>() : nullptr;
    return on.has_value();
  }
  if (key == "seed") return parse_number(value, options.seed);
  if (key == "threads") return parse_number(value, options.threads);
  if (key == "instruction_budget") return parse_number(value, options.instruction_budget);
  if (key == "max_reports") {
    uint32_t most = 0;
    if (!parse_number(value, most) || most == 0) return false;
    options.max_reports = most;
    return true;
  }
  known = false;
  return false;
}

} // namespace

Device &Device::get() {
  static Device *const instance = new Device;
  return *instance;
}

Options Device::options() {
  const std::lock_guard lock(mutex);
  Options options = current_options;
  options.workgroups_ended = &workgroups_ended;
  options.pools = pool_annotations.snapshot();
  return options;
}

Configured Device::configure(std::string_view key, std::string_view value) {
  if (key == "stream_order") {
    uint64_t seed = 0;
    if (value != "concurrent" && !parse_number(value, seed)) return Configured::bad_value;
    Scheduler::get().set_shuffled(value == "concurrent" ? std::nullopt : std::optional(seed));
    return Configured::ok;
  }
  if (key == "devices") {
    int wanted = 0;
    return parse_number(value, wanted) ? set_count(wanted) : Configured::bad_value;
  }
  if (key == "clear_fault" || key == "reset_counters" || key == "defaults") {
    if (value != "1") return Configured::bad_value;
    if (key == "clear_fault") {
      Scheduler::get().clear_faults();
      return Configured::ok;
    }
    if (key == "defaults") {
      Scheduler::get().set_shuffled(std::nullopt);
      launch_filter.reset();
      host_calls = false;
    }
    if (key == "reset_counters") Scheduler::get().reset_closed_busy();
    const std::lock_guard lock(mutex);
    if (key == "defaults") {
      Options fresh;
      fresh.watch = std::move(current_options.watch);
      current_options = std::move(fresh);
    }
    if (key == "reset_counters") {
      total = Counters();
      dropped = 0;
      workgroups_ended = 0;
    }
    return Configured::ok;
  }
  if (key == "host_calls") {
    const std::optional<bool> on = parse_switch(value);
    if (on) host_calls = *on;
    return on ? Configured::ok : Configured::bad_value;
  }
  if (const std::optional<bool> taken = launch_filter.configure(key, value))
    return *taken ? Configured::ok : Configured::bad_value;
  const std::lock_guard lock(mutex);
  if (key == "suppressions")
    return read_suppressions(current_options, std::string(value)) ? Configured::ok : Configured::bad_value;
  if (key == "report_file")
    return report_file.open(std::string(value)) ? Configured::ok : Configured::bad_value;
  bool known = false;
  if (configure_option(current_options, key, value, known)) {
    const Checks &checks = current_options.checks;
    if (checks.leaks || checks.ignored_errors) check_at_end(checks.ignored_errors);
    return Configured::ok;
  }
  return known ? Configured::bad_value : Configured::unknown_key;
}

bool Device::watch(MemoryWatch::Range range) {
  const std::lock_guard lock(mutex);
  std::vector<MemoryWatch::Range> ranges;
  if (current_options.watch) ranges = current_options.watch->ranges();
  for (const MemoryWatch::Range &other : ranges)
    if (range.start < other.end && other.start < range.end) return false;
  ranges.push_back(range);
  current_options.watch = std::make_shared<const MemoryWatch>(std::move(ranges));
  return true;
}

bool Device::unwatch(uint64_t start) {
  const std::lock_guard lock(mutex);
  if (!current_options.watch) return false;
  std::vector<MemoryWatch::Range> ranges = current_options.watch->ranges();
  if (std::erase_if(ranges, [&](const MemoryWatch::Range &range) { return range.start == start; }) == 0)
    return false;
  current_options.watch = ranges.empty() ? nullptr : std::make_shared<const MemoryWatch>(std::move(ranges));
  return true;
}

bool Device::keep(const Report &report) {
  const auto known = std::ranges::find_if(reports, [&](const Report &r) { return same_mistake(r, report); });
  if (known != reports.end()) {
    known->count += report.count;
    return false;
  }
  if (std::ranges::count_if(reports, [&](const Report &r) { return same_kind(r, report); }) >= most_reports) {
    dropped += report.count;
    return false;
  }
  reports.push_back(report);
  return true;
}

void Device::add_result(const LaunchResult &result) {
  const std::lock_guard lock(mutex);
  total += result.counters;
  clk = std::max(clk.load(), result.counters.clock_end);
  dropped += result.reports_dropped;
  report_file.append(result);
  for (const Report &report : result.reports)
    if (report.suppressed == 0) keep(report);
}

bool Device::add_report(Report report) {
  const std::lock_guard lock(mutex);
  if (current_options.suppressions) report.suppressed = current_options.suppressions->line_for(report);
  if (report.suppressed != 0) report.set({false, false});
  const bool fails = report.fails;
  if (report.suppressed == 0 && !keep(report)) return fails;
  LaunchResult no_launch; // for a report that belongs to no launch
  no_launch.reports.push_back(std::move(report));
  report_file.append(no_launch);
  return fails;
}

void Device::add_host_finding(const Checks &warnings, ReportKind kind, std::string name, std::string message,
                              uint64_t address, uint64_t count) {
  Report report;
  report.kind = kind;
  report.fails = report_fails(kind, report.level, warnings);
  report.kernel = std::move(name);
  report.message = std::move(message);
  report.address = address;
  report.count = count;
  add_report(std::move(report));
}

uint64_t Device::reports_dropped() {
  const std::lock_guard lock(mutex);
  return dropped;
}

Counters Device::counters() {
  const std::lock_guard lock(mutex);
  Counters counters = total;
  counters.workgroups = workgroups_ended;
  return counters;
}

void Device::add_host_block(const void *start, HostBlock block) {
  const std::lock_guard lock(mutex);
  host_blocks[reinterpret_cast<uint64_t>(start)] = block;
}

bool Device::remove_host_block(const void *start, HostBlock::Kind kind) {
  const std::lock_guard lock(mutex);
  const auto at = host_blocks.find(reinterpret_cast<uint64_t>(start));
  if (at == host_blocks.end() || at->second.kind != kind) return false;
  host_blocks.erase(at);
  return true;
}

bool Device::find_host_block(const void *address, uint64_t &start, HostBlock &block) {
  const std::lock_guard lock(mutex);
  const uint64_t wanted = reinterpret_cast<uint64_t>(address);
  auto at = host_blocks.upper_bound(wanted);
  if (at == host_blocks.begin()) return false;
  --at;
  if (wanted - at->first >= at->second.bytes) return false;
  start = at->first;
  block = at->second;
  return true;
}

bool Device::pinned(const void *address, uint64_t bytes) {
  uint64_t start;
  HostBlock block;
  if (!find_host_block(address, start, block)) return false;
  return bytes <= block.bytes - (reinterpret_cast<uint64_t>(address) - start);
}

bool Device::set_peer_access(int device, int peer, bool open) {
  const auto bit = uint8_t(1u << peer);
  std::atomic<uint8_t> &mask = peers[size_t(device)];
  const uint8_t before = open ? mask.fetch_or(bit) : mask.fetch_and(uint8_t(~bit));
  return ((before & bit) != 0) != open;
}

Configured Device::set_count(int wanted) {
  if (wanted < 1 || wanted > MemoryBlock::most_devices) return Configured::bad_value;
  // Handles, memory and modules store the number of their device.
  for (const MemoryBlock &block : device_memory.snapshot()->blocks())
    if (!block.freed) return Configured::bad_value;
  if (live_streams() != 0 || live_events() != 0) return Configured::bad_value;
  devices = wanted;
  for (size_t i = 0; i < peers.size(); ++i)
    peers[i] = uint8_t(1u << i);
  return Configured::ok;
}

int current_device() {
  return thread_state.device < Device::get().count() ? thread_state.device : 0;
}

void set_current_device(int device) {
  require_device(device);
  thread_state.device = device;
}

void require_device(int device) {
  require(device >= 0 && device < Device::get().count(), hipErrorInvalidDevice);
}

} // namespace sluice::emulator::hip
