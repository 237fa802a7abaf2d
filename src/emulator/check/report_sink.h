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
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "emulator/check/report.h"

namespace sluice::emulator {

/// Which rule of which check found something, and what that means for the launch.
struct Rule {
  ReportKind kind{};
  HazardLevel level = HazardLevel::required; // for a hazard
  uint8_t hazard = 0;                        // its rule
  bool fails = true;
  bool goes_on = false;

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
  /// Returns the line of the rule that suppresses a finding, or 0.
  using Suppressing = std::function<uint32_t(const Finding &)>;

  /// `limit`: places kept for each rule. `suppressing` is nullable.
  ReportSink(uint32_t limit, bool stop_at_first, Suppressing suppressing = nullptr)
      : limit(limit), stop_at_first(stop_at_first), suppressing(std::move(suppressing)) {}

  /// True for the first finding of a rule at a pair of instructions: only then is a message needed.
  bool is_new(const Rule &rule, uint32_t op, std::optional<uint32_t> other_op);
  void add(Finding finding);
  /// A finding that was counted until the end of the launch; a count beyond 32768 is cut to that.
  void add_at_end(const Finding &finding, uint64_t count);

  struct Entry {
    Finding finding;
    uint64_t count;
    uint32_t suppressed; // line of the rule; 0: not suppressed

    bool fails() const { return finding.rule.fails && suppressed == 0; }
  };
  /// The launch may stop: running on would find nothing new (one mistake has happened too often), nothing
  /// wanted (the first report was to end it), or only consequences of a service that is missing. Only errors
  /// that fail the launch stop it.
  bool gave_up() const { return hopeless.load(std::memory_order_relaxed); }
  /// Sorted by rule and instruction, so that runs on several threads give the same answer.
  std::vector<Entry> take();
  /// Findings at places beyond the limit.
  uint64_t dropped() const { return dropped_count; }

private:
  using Place = std::pair<uint32_t, uint32_t>;
  using Places = std::map<Place, Entry>;

  void count_again(Entry &entry);

  const uint32_t limit;
  const bool stop_at_first;
  const Suppressing suppressing;
  std::mutex mutex;
  std::map<Rule, Places> rules;
  uint64_t dropped_count = 0;
  bool has_enough = false; // findings of waves on their way to a halt are not wanted
  std::atomic<bool> hopeless = false;
};

} // namespace sluice::emulator
