//===- first_reads.cpp - loads before a compare-and-swap ------------------------------------------------===//
#include "emulator/check/first_reads.h"

namespace sluice::emulator {

void FirstReads::met(const LoadAndAtomic &meeting) {
  const std::lock_guard lock(mutex);
  const auto [entry, is_new] = meetings.try_emplace({meeting.op, meeting.other_op}, meeting);
  if (!is_new) ++entry->second.count;
}

void FirstReads::compared(uint32_t load_op) {
  const std::lock_guard lock(mutex);
  first_reads.insert(load_op);
}

std::vector<LoadAndAtomic> FirstReads::races() const {
  const std::lock_guard lock(mutex);
  std::vector<LoadAndAtomic> result;
  for (const auto &[ops, meeting] : meetings)
    if (!first_reads.contains(meeting.load_is_later ? meeting.op : meeting.other_op))
      result.push_back(meeting);
  return result;
}

} // namespace sluice::emulator
