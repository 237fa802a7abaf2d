//===- report_sink.h - reports of one launch, from all its threads --------------------------------------===//
//
// The same mistake in a loop, in every lane and in every workgroup is one report with a count. The number of
// places kept is limited for each rule separately: findings of one rule never displace those of another.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <array>
#include <atomic>
#include <compare>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "emulator/check/report.h"

namespace sluice::emulator {

/// Which rule of which check found something, and whether that fails the launch.
struct Rule {
  ReportKind kind{};
  HazardLevel level = HazardLevel::required; // for a hazard
  uint8_t hazard = 0;                        // its rule
  bool fails = true;

  friend auto operator<=>(const Rule &, const Rule &) = default;
};

/// What a check has found. It names instructions by their index in the program; the launch turns them into
/// text.
struct Finding {
  Rule rule;
  uint32_t op = 0;
  std::array<uint32_t, 3> workgroup{};
  uint32_t wave = 0;
  int32_t lane = -1;
  uint64_t address = 0;
  std::optional<uint32_t> other_op;
  uint32_t other_wave = 0;
  std::string message;
};

class ReportSink {
public:
  /// `limit`: places kept for each rule.
  ReportSink(uint32_t limit, bool stop_at_first) : limit(limit), stop_at_first(stop_at_first) {}

  /// True for the first finding of a rule at a pair of instructions: only then is a message needed.
  bool is_new(const Rule &rule, uint32_t op, std::optional<uint32_t> other_op);
  void add(Finding finding);

  struct Entry {
    Finding finding;
    uint64_t count;
  };
  /// The launch may stop: running on would find nothing new (one mistake has happened too often) or nothing
  /// wanted (the first report was to end it). Warnings never stop it.
  bool gave_up() const { return hopeless.load(std::memory_order_relaxed); }
  /// Sorted by rule and instruction, so that runs on several threads give the same answer.
  std::vector<Entry> take();
  /// Findings at places beyond the limit.
  uint64_t dropped() const { return dropped_count; }

private:
  using Place = std::pair<uint32_t, uint32_t>;
  using Places = std::map<Place, Entry>;

  /// Findings of waves on their way to a halt after the first report are not wanted.
  bool has_enough() const { return stop_at_first && any_failed; }
  void count_again(Entry &entry);

  const uint32_t limit;
  const bool stop_at_first;
  std::mutex mutex;
  std::map<Rule, Places> rules;
  uint64_t dropped_count = 0;
  bool any_failed = false;
  std::atomic<bool> hopeless = false;
};

} // namespace sluice::emulator
