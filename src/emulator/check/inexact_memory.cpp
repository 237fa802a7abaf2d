//===- inexact_memory.cpp - which bytes of memory hold values that a GPU may compute differently --------===//
#include "emulator/check/inexact_memory.h"

#include <algorithm>
#include <vector>

namespace sluice::emulator {

template <typename Change>
void InexactMemory::change(uint64_t address, uint64_t bytes, bool makes, Change &&change) {
  if (!makes && !any.load(std::memory_order_acquire)) return;
  const std::lock_guard lock(mutex);
  for (const uint64_t end = address + bytes; address < end;) {
    const uint64_t in_page = address % page_bytes;
    const uint64_t count = std::min(end - address, page_bytes - in_page);
    auto page = pages.find(address / page_bytes);
    if (page == pages.end() && makes) {
      page = pages.emplace(address / page_bytes, std::make_unique<Page>()).first;
      any.store(true, std::memory_order_release);
    }
    for (uint64_t i = 0; page != pages.end() && i < count; ++i)
      change((*page->second)[in_page + i], address + i);
    address += count;
  }
}

InexactSet InexactMemory::get(uint64_t address, uint64_t bytes) {
  InexactSet result = 0;
  change(address, bytes, false, [&](InexactSet &held, uint64_t) { result |= held; });
  return result;
}

void InexactMemory::set(uint64_t address, uint64_t bytes, InexactSet sources) {
  change(address, bytes, sources != 0, [&](InexactSet &held, uint64_t) { held = sources; });
}

void InexactMemory::add(uint64_t address, uint64_t bytes, InexactSet sources) {
  if (sources != 0) change(address, bytes, true, [&](InexactSet &held, uint64_t) { held |= sources; });
}

void InexactMemory::copy(uint64_t to, uint64_t from, uint64_t bytes) {
  if (!any.load(std::memory_order_acquire)) return;
  std::vector<InexactSet> values(bytes);
  change(from, bytes, false, [&](InexactSet &held, uint64_t address) { values[address - from] = held; });
  const bool makes = std::ranges::any_of(values, [](InexactSet held) { return held != 0; });
  change(to, bytes, makes, [&](InexactSet &held, uint64_t address) { held = values[address - to]; });
}

} // namespace sluice::emulator
