//===- unused_reads.cpp - reads of LDS that a later store meets -----------------------------------------===//
#include "emulator/check/unused_reads.h"

#include <algorithm>
#include <bit>

namespace sluice::emulator {

void UnusedReads::met(uint32_t store_op, uint32_t read_op, const std::function<Finding()> &finding) {
  follow[read_op].fetch_or(is_followed, std::memory_order_relaxed);
  const std::lock_guard lock(mutex);
  Meeting &meeting = all[{store_op, read_op}];
  if (meeting.count++ == 0) meeting.finding = finding();
}

void UnusedReads::judge(uint32_t read_op, bool used) {
  follow[read_op].fetch_or(used ? was_used : was_unused, std::memory_order_relaxed);
}

std::vector<UnusedReads::Meeting> UnusedReads::meetings() const {
  const std::lock_guard lock(mutex);
  std::vector<Meeting> result;
  for (const auto &[ops, meeting] : all)
    if (follow[ops.second].load(std::memory_order_relaxed) != (is_followed | was_unused))
      result.push_back(meeting);
  return result;
}

void FollowedReads::judge(uint32_t op, const Read &read) {
  if (read.met != 0) launch->judge(op, (read.used & read.met) != 0);
}

void FollowedReads::enter(uint32_t wave, uint32_t op, uint32_t part, const uint32_t *addresses,
                          uint64_t lanes, uint32_t bytes) {
  const auto [entry, is_new] = reads.try_emplace({wave, op, part});
  Read &read = entry->second;
  if (!is_new) judge(op, read);
  std::copy_n(addresses, wave_lanes, read.addresses.begin());
  read.lanes = lanes;
  read.bytes = bytes;
  read.used = read.met = 0;
}

template <class Visit> void FollowedReads::visit(uint32_t wave, uint32_t op, Visit &&visit) {
  const auto end = reads.lower_bound({wave, op + 1, 0});
  for (auto entry = reads.lower_bound({wave, op, 0}); entry != end; ++entry)
    visit(entry->second);
}

void FollowedReads::use(uint32_t wave, uint32_t op, uint64_t lanes) {
  visit(wave, op, [&](Read &read) { read.used |= lanes; });
}

void FollowedReads::meet(uint32_t wave, uint32_t op, uint32_t address, uint32_t bytes) {
  visit(wave, op, [&](Read &read) {
    for (uint64_t lanes = read.lanes; lanes != 0; lanes &= lanes - 1) {
      const uint32_t start = read.addresses[uint32_t(std::countr_zero(lanes))];
      if (start < address + bytes && address < start + read.bytes) read.met |= lanes & (0 - lanes);
    }
  });
}

void FollowedReads::finish() {
  for (const auto &[key, read] : reads)
    judge(std::get<1>(key), read);
  reads.clear();
}

} // namespace sluice::emulator
