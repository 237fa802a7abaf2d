//===- report_sink.cpp - reports of one launch, from all its threads ------------------------------------===//
#include "emulator/check/report_sink.h"

#include <algorithm>

namespace sluice::emulator {

namespace {
constexpr uint32_t no_other = ~0u;
// A kernel given a length far beyond its memory would otherwise go on for hours.
constexpr uint64_t enough_repetitions = 1 << 16;
constexpr uint64_t most_at_end = 1 << 15;
} // namespace

void ReportSink::count_again(Entry &entry) {
  if (++entry.count >= enough_repetitions && entry.fails()) hopeless.store(true, std::memory_order_relaxed);
}

bool ReportSink::is_new(const Rule &rule, uint32_t op, std::optional<uint32_t> other_op) {
  const std::lock_guard lock(mutex);
  Places &places = rules[rule];
  const auto found = places.find({op, other_op.value_or(no_other)});
  if (found != places.end()) {
    count_again(found->second);
    return false;
  }
  if (has_enough) return false;
  if (places.size() < limit) return true;
  ++dropped_count;
  return false;
}

void ReportSink::add_at_end(const Finding &finding, uint64_t count) {
  for (uint64_t i = 0; i < std::min(count, most_at_end); ++i)
    if (is_new(finding.rule, finding.op, finding.other_op)) add(finding);
}

void ReportSink::add(Finding finding) {
  const std::lock_guard lock(mutex);
  Places &places = rules[finding.rule];
  const Place place{finding.op, finding.other_op.value_or(no_other)};
  const auto found = places.find(place);
  if (found != places.end()) return count_again(found->second);
  if (has_enough) return;
  const bool missing_service = finding.rule.kind == ReportKind::not_emulated;
  const uint32_t suppressed = suppressing ? suppressing(finding) : 0;
  const Entry entry{std::move(finding), 1, suppressed};
  if (missing_service || (stop_at_first && entry.fails())) {
    has_enough = true;
    hopeless.store(true, std::memory_order_relaxed);
  }
  if (places.size() < limit)
    places.emplace(place, entry);
  else
    ++dropped_count;
}

std::vector<ReportSink::Entry> ReportSink::take() {
  const std::lock_guard lock(mutex);
  std::vector<Entry> result;
  for (auto &[rule, places] : rules)
    for (auto &[place, entry] : places)
      result.push_back(std::move(entry));
  rules.clear();
  return result;
}

} // namespace sluice::emulator
