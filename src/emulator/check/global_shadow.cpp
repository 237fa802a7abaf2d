//===- global_shadow.cpp - which workgroup touched which dword of memory --------------------------------===//
#include "emulator/check/global_shadow.h"

#include <thread>

namespace sluice::emulator {

namespace {

constexpr uint32_t page_dwords = 1024;
constexpr uint32_t nobody = 0; // a wave is its number in the launch plus 1

struct Access {
  uint32_t wave = nobody;
  uint32_t moment = 0;
  uint32_t op : 22 = 0;
  uint32_t bytes : 4 = 0; // one bit each
  uint32_t atomic : 1 = 0;
};

struct Cell {
  Access store;    // the last one
  Access loads[2]; // the last ones of two workgroups
};

} // namespace

struct Page {
  std::atomic_flag busy;
  std::array<Cell, page_dwords> cells;
};

GlobalShadow::GlobalShadow() = default;
GlobalShadow::~GlobalShadow() = default;

Page &GlobalShadow::page_of(Pages &pages, uint64_t number) {
  Pages::Entry &entry = pages.entries[number % pages.entries.size()];
  if (entry.number != number) {
    Shard &shard = shards[number % shards.size()];
    const std::lock_guard lock(shard.mutex);
    std::unique_ptr<Page> &page = shard.pages[number];
    if (!page) page = std::make_unique<Page>();
    entry = {number, page.get()};
  }
  return *entry.page;
}

GlobalConflict GlobalShadow::enter(Pages &pages, const WaveOrder &wave, uint32_t when, uint64_t address,
                                   uint32_t bytes, GlobalAccess access) {
  GlobalConflict found;
  auto meet = [&](const Access &other, uint32_t touched, bool was_store) {
    if ((other.bytes & touched) == 0 || wave.same_workgroup(other.wave - 1)) return;
    if (other.atomic && access.atomic) return;
    if (found.order != AccessOrder::before) return;
    const AccessOrder order =
        wave.order_of(other.wave - 1, other.moment, was_store, other.atomic, access.store || access.atomic);
    if (order != AccessOrder::before) found = {order, was_store, other.op, other.wave - 1};
  };
  const uint64_t end = address + bytes;
  while (address < end) {
    const uint64_t number = address / 4 / page_dwords;
    const uint64_t page_end = std::min(end, (number + 1) * page_dwords * 4);
    Page &page = page_of(pages, number);
    while (page.busy.test_and_set(std::memory_order_acquire))
      std::this_thread::yield();
    while (address < page_end) {
      Cell &cell = page.cells[address / 4 % page_dwords];
      const uint64_t next = std::min(page_end, (address / 4 + 1) * 4);
      const uint32_t touched = ((1u << (next - address)) - 1) << address % 4;
      const Access mine = {wave.number() + 1, when, access.op, touched, access.atomic};
      meet(cell.store, touched, true);
      if (access.store) {
        for (const Access &load : cell.loads)
          meet(load, touched, false);
        cell.store = mine;
      }
      if (access.load) {
        if (cell.loads[0].wave != nobody && !wave.same_workgroup(cell.loads[0].wave - 1))
          cell.loads[1] = cell.loads[0];
        cell.loads[0] = mine;
      }
      address = next;
    }
    page.busy.clear(std::memory_order_release);
  }
  return found;
}

} // namespace sluice::emulator
