//===- line_records.cpp - the accesses that are remembered of one line of memory ------------------------===//
#include "emulator/check/line_records.h"

#include <algorithm>
#include <memory>

namespace sluice::emulator {

uint32_t LineRecords::find(uint64_t dwords, uint32_t from) const {
  const uint64_t *const masks = const_cast<LineRecords *>(this)->masks();
  constexpr uint32_t block = 8;
  for (; from + block <= count; from += block) {
    uint64_t any = 0;
    for (uint32_t i = 0; i < block; ++i)
      any |= masks[from + i];
    if ((any & dwords) != 0) break;
  }
  while (from < count && (masks[from] & dwords) == 0)
    ++from;
  return from;
}

void LineRecords::grow() {
  const uint32_t larger = capacity * 2;
  void *const memory = std::malloc(larger * (sizeof(uint64_t) + sizeof(AccessRecord)));
  if (memory == nullptr) throw std::bad_alloc();
  std::copy_n(masks(), count, static_cast<uint64_t *>(memory));
  std::uninitialized_copy_n(records(), count,
                            reinterpret_cast<AccessRecord *>(static_cast<uint64_t *>(memory) + larger));
  std::free(more);
  more = memory;
  capacity = larger;
}

void LineRecords::add(uint64_t dwords, const AccessRecord &record) {
  for (uint32_t i = 0; i < count; ++i)
    if (records()[i] == record) {
      masks()[i] |= dwords;
      return;
    }
  if (count == capacity) grow();
  masks()[count] = dwords;
  records()[count] = record;
  ++count;
}

void LineRecords::drop_empty() {
  uint32_t kept = 0;
  for (uint32_t i = 0; i < count; ++i) {
    if (masks()[i] == 0) continue;
    if (kept != i) {
      masks()[kept] = masks()[i];
      records()[kept] = records()[i];
    }
    ++kept;
  }
  count = kept;
}

} // namespace sluice::emulator
