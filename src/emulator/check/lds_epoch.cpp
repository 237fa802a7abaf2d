//===- lds_epoch.cpp - accesses of LDS since the last barrier, by whole instructions --------------------===//
#include "emulator/check/lds_epoch.h"

#include <bit>
#include <cstring>
#include <unordered_map>

namespace sluice::emulator {

void LdsEpoch::reset(uint32_t lds_bytes) {
  next();
  stored.reset((lds_bytes + 3) / 4);
  combined.reset((lds_bytes + 3) / 4);
  block_shift = lds_bytes == 0 ? 0 : uint32_t(std::bit_width((lds_bytes - 1) / 64));
}

/// A loop without a barrier reads the same again and again: the last time is enough, if all that is kept are
/// reads.
void LdsEpoch::drop_repeated_reads() {
  std::unordered_map<uint64_t, const LdsAccesses *> latest; // by wave and instruction
  std::vector<bool> repeated(kept.size());
  for (size_t i = kept.size(); i-- != 0;) {
    const LdsAccesses &one = kept[i];
    if (one.by.use != LdsUse::read) return;
    const auto [later, is_first] = latest.try_emplace(uint64_t(one.by.wave) << 32 | one.by.op, &one);
    repeated[i] = !is_first && later->second->lanes == one.lanes && later->second->addresses == one.addresses;
  }
  size_t left = 0;
  for (size_t i = 0; i < kept.size(); ++i)
    if (!repeated[i] && left++ != i) kept[left - 1] = kept[i];
  kept.resize(left);
}

void LdsEpoch::forget_uses() {
  stored.clear();
  combined.clear();
  for (; waves != 0; waves &= waves - 1) {
    const auto wave = uint32_t(std::countr_zero(waves));
    read_blocks[wave] = stored_blocks[wave] = 0;
  }
}

LdsEpoch::Blocks LdsEpoch::blocks_of(const LdsRange &range) const {
  const uint32_t first = range.low >> block_shift;
  const uint32_t last = (range.high - 1) >> block_shift;
  return (all_lanes << first) & (all_lanes >> (63 - last));
}

LdsEpoch::Blocks LdsEpoch::blocks_of(const LdsLanes &at) const {
  if (at.range.high - at.range.low <= 2 * at.bytes * uint32_t(std::popcount(at.lanes)))
    return blocks_of(at.range);
  Blocks result = 0;
  for (uint64_t left = at.lanes; left != 0; left &= left - 1) {
    const uint32_t address = at.addresses[std::countr_zero(left)];
    result |= Blocks(1) << (address >> block_shift) | Blocks(1) << ((address + at.bytes - 1) >> block_shift);
  }
  return result;
}

LdsEpoch::Blocks LdsEpoch::others(const std::array<Blocks, most_waves> &blocks, uint32_t wave) const {
  Blocks result = 0;
  for (uint32_t left = waves & ~(1u << wave); left != 0; left &= left - 1)
    result |= blocks[uint32_t(std::countr_zero(left))];
  return result;
}

/// Enters the dwords of a store, unless one of them was stored in this epoch or by another of the lanes.
bool LdsEpoch::take_dwords(const LdsLanes &at) {
  const auto first = uint32_t(std::countr_zero(at.lanes));
  const uint64_t run = at.lanes >> first;
  bool in_a_row = (run & (run + 1)) == 0;
  const auto count = uint32_t(std::popcount(at.lanes));
  for (uint32_t i = 0; i < count && in_a_row; ++i)
    in_a_row = at.addresses[first + i] == at.addresses[first] + i * at.bytes;
  if (in_a_row) {
    if (stored.any(at.range)) return false;
    stored.add(at.range);
    return true;
  }
  auto dwords_of_first = [&](uint64_t lanes) {
    return dwords_at(at.addresses[std::countr_zero(lanes)], at.bytes);
  };
  for (uint64_t left = at.lanes; left != 0; left &= left - 1) {
    if (!stored.any(dwords_of_first(left))) {
      stored.add(dwords_of_first(left));
      continue;
    }
    for (uint64_t taken = at.lanes & ((left & (0 - left)) - 1); taken != 0; taken &= taken - 1)
      stored.remove(dwords_of_first(taken));
    return false;
  }
  return true;
}

bool LdsEpoch::keep(const LdsBy &by, const LdsLanes &at) {
  const Blocks blocks = blocks_of(at);
  if (by.use == LdsUse::read) {
    if ((stored.any(at.range) || combined.any(at.range)) && (blocks & others(stored_blocks, by.wave)) != 0)
      return false;
    read_blocks[by.wave] |= blocks;
  } else {
    if ((blocks & others(read_blocks, by.wave)) != 0) return false;
    if (by.use == LdsUse::atomic ? stored.any(at.range) : combined.any(at.range) || !take_dwords(at))
      return false;
    if (by.use == LdsUse::atomic) combined.add(at.range);
    stored_blocks[by.wave] |= blocks;
  }
  waves |= 1u << by.wave;
  kept_range.add(at.range);
  LdsAccesses &accesses = kept.emplace_back();
  accesses.by = by;
  accesses.bytes = at.bytes;
  accesses.lanes = at.lanes;
  std::memcpy(accesses.addresses.data(), at.addresses, sizeof accesses.addresses);
  return true;
}

void LdsEpoch::note(LdsUse use, const LdsRange &range, uint32_t wave) {
  waves |= 1u << wave;
  (use == LdsUse::read ? read_blocks : stored_blocks)[wave] |= blocks_of(range);
  if (use == LdsUse::store) stored.add(range);
  if (use == LdsUse::atomic) combined.add(range);
}

} // namespace sluice::emulator
