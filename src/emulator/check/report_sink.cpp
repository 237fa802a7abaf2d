//===- report_sink.cpp - reports of one launch, from all its threads ------------------------------------===//
#include "emulator/check/report_sink.h"

namespace sluice::emulator {

namespace {
constexpr uint32_t no_other = ~0u;
// A kernel given a length far beyond its memory would otherwise go on for hours.
constexpr uint64_t enough_repetitions = 1 << 16;
} // namespace

bool ReportSink::is_new(ReportKind kind, uint32_t op, std::optional<uint32_t> other_op) {
  const std::lock_guard lock(mutex);
  const auto found = entries.find({kind, op, other_op.value_or(no_other)});
  if (found != entries.end()) {
    if (++found->second.count >= enough_repetitions) hopeless.store(true, std::memory_order_relaxed);
    return false;
  }
  if (has_enough()) return false;
  if (entries.size() < limit) return true;
  ++dropped_count;
  return false;
}

void ReportSink::add(Finding finding) {
  const std::lock_guard lock(mutex);
  if (stop_at_first) hopeless.store(true, std::memory_order_relaxed);
  const Key key{finding.kind, finding.op, finding.other_op.value_or(no_other)};
  const auto found = entries.find(key);
  if (found != entries.end())
    ++found->second.count;
  else if (has_enough())
    return;
  else if (entries.size() < limit)
    entries.emplace(key, Entry{std::move(finding), 1});
  else
    ++dropped_count;
}

std::vector<ReportSink::Entry> ReportSink::take() {
  const std::lock_guard lock(mutex);
  std::vector<Entry> result;
  for (auto &[key, entry] : entries)
    result.push_back(std::move(entry));
  entries.clear();
  return result;
}

} // namespace sluice::emulator
