//===- unused_reads.cpp - reads of LDS that a later store meets -----------------------------------------===//
#include "emulator/check/unused_reads.h"

#include <algorithm>
#include <bit>

namespace sluice::emulator {

void UnusedReads::met(const Finding &finding) {
  const uint32_t read_op = *finding.other_op;
  follow[read_op].fetch_or(is_followed, std::memory_order_relaxed);
  const std::lock_guard lock(mutex);
  Meeting &meeting = all.try_emplace({finding.op, read_op}, Meeting{finding}).first->second;
  ++meeting.count;
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

void FollowedReads::use(uint32_t wave, uint32_t op, uint64_t lanes) {
  for (auto read = reads.lower_bound({wave, op, 0}); read != reads.end(); ++read) {
    if (std::get<0>(read->first) != wave || std::get<1>(read->first) != op) break;
    read->second.used |= lanes;
  }
}

void FollowedReads::meet(uint32_t wave, uint32_t op, uint32_t address, uint32_t bytes) {
  for (auto entry = reads.lower_bound({wave, op, 0}); entry != reads.end(); ++entry) {
    if (std::get<0>(entry->first) != wave || std::get<1>(entry->first) != op) break;
    Read &read = entry->second;
    for (uint64_t lanes = read.lanes; lanes != 0; lanes &= lanes - 1) {
      const uint32_t start = read.addresses[uint32_t(std::countr_zero(lanes))];
      if (start < address + bytes && address < start + read.bytes) read.met |= lanes & (0 - lanes);
    }
  }
}

void FollowedReads::finish() {
  for (const auto &[key, read] : reads)
    judge(std::get<1>(key), read);
  reads.clear();
}

} // namespace sluice::emulator
