//===- global_shadow.cpp - which workgroup touched which dword of memory --------------------------------===//
#include "emulator/check/global_shadow.h"

#include <bit>
#include <thread>

namespace sluice::emulator {

namespace {

constexpr uint32_t page_dwords = 1024;
constexpr uint32_t page_bytes = page_dwords * 4;
constexpr uint32_t nobody = 0; // a wave is stored as its number in the launch plus 1

struct Access {
  uint32_t wave = nobody;
  uint32_t moment = 0;
  uint32_t op : 22 = 0;
  uint32_t bytes : 4 = 0; // one bit each
  uint32_t atomic : 1 = 0;
  uint32_t scalar : 1 = 0;
};

struct Cell {
  Access store;    // the last store
  Access loads[2]; // the last loads of two workgroups
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

/// The page in use, locked: a wave's accesses are usually next to each other.
class GlobalShadow::Locked {
public:
  Locked(GlobalShadow &shadow, Pages &pages) : shadow(shadow), pages(pages) {}
  ~Locked() { unlock(); }
  Locked(const Locked &) = delete;
  Locked &operator=(const Locked &) = delete;

  Cell &cell(uint64_t dword) {
    if (dword / page_dwords != number) {
      unlock();
      number = dword / page_dwords;
      page = &shadow.page_of(pages, number);
      while (page->busy.test_and_set(std::memory_order_acquire))
        std::this_thread::yield();
    }
    return page->cells[dword % page_dwords];
  }

private:
  void unlock() {
    if (page) page->busy.clear(std::memory_order_release);
  }

  GlobalShadow &shadow;
  Pages &pages;
  Page *page = nullptr;
  uint64_t number = ~uint64_t(0);
};

std::vector<MemoryUse> GlobalShadow::uses() const {
  std::vector<MemoryUse> list;
  auto use = [&](uint64_t dword, uint32_t bytes, MemoryUse::Kind kind) {
    if (bytes == 0) return;
    const uint64_t start = dword + uint64_t(std::countr_zero(bytes));
    const uint64_t end = dword + uint64_t(std::bit_width(bytes));
    if (!list.empty() && list.back().kind == kind && list.back().end == start)
      list.back().end = end;
    else
      list.push_back({start, end, 0, kind});
  };
  auto bytes = [](const Access &access, bool atomic) -> uint32_t {
    return access.wave != nobody && bool(access.atomic) == atomic ? access.bytes : 0;
  };
  for (const Shard &shard : shards)
    for (const auto &[number, page] : shard.pages) {
      // One kind after another, so that neighbours form one range.
      auto each = [&, first = number * page_bytes, &cells = page->cells](MemoryUse::Kind kind,
                                                                         auto &&touched) {
        for (uint32_t i = 0; i < page_dwords; ++i)
          use(first + i * 4, touched(cells[i]), kind);
      };
      each(MemoryUse::Kind::write, [&](const Cell &cell) { return bytes(cell.store, false); });
      each(MemoryUse::Kind::read,
           [&](const Cell &cell) { return bytes(cell.loads[0], false) | bytes(cell.loads[1], false); });
      each(MemoryUse::Kind::atomic, [&](const Cell &cell) {
        return bytes(cell.store, true) | bytes(cell.loads[0], true) | bytes(cell.loads[1], true);
      });
    }
  return list;
}

GlobalConflict GlobalShadow::enter(Pages &pages, const WaveOrder &wave, uint32_t when,
                                   const uint64_t *addresses, uint64_t lanes, uint32_t bytes,
                                   GlobalAccess access) {
  GlobalConflict found;
  uint32_t lane = 0;
  auto meet = [&](const Access &other, uint32_t touched, bool was_store) {
    if ((other.bytes & touched) == 0 || wave.same_workgroup(other.wave - 1)) return;
    if (other.atomic && access.atomic) return;
    if (found.order != AccessOrder::before) return;
    const AccessOrder order =
        wave.order_of({other.wave - 1, other.moment, was_store, bool(other.atomic), bool(other.scalar)},
                      access.store || access.atomic);
    if (order != AccessOrder::before) found = {order, lane, was_store, other.op, other.wave - 1};
  };
  Locked locked(*this, pages);
  Access mine = {wave.number() + 1, when, access.op, 15, access.atomic, access.scalar};
  auto enter_cell = [&](Cell &cell) {
    if (cell.store.wave != nobody) meet(cell.store, mine.bytes, true);
    if (access.store) {
      for (const Access &load : cell.loads)
        meet(load, mine.bytes, false);
      cell.store = mine;
    }
    if (access.load) {
      const uint32_t last = cell.loads[0].wave;
      if (last != nobody && !wave.same_workgroup(last - 1)) cell.loads[1] = cell.loads[0];
      cell.loads[0] = mine;
    }
  };
  for (; lanes != 0; lanes &= lanes - 1) {
    lane = uint32_t(std::countr_zero(lanes));
    uint64_t address = addresses[lane];
    const uint64_t end = address + bytes;
    if (((address | bytes) & 3) == 0 && address % page_bytes + bytes <= page_bytes) [[likely]] {
      Cell *cell = &locked.cell(address / 4);
      mine.bytes = 15;
      for (uint32_t i = 0; i < bytes / 4; ++i)
        enter_cell(cell[i]);
      continue;
    }
    while (address < end) {
      const uint64_t next = std::min(end, (address / 4 + 1) * 4);
      mine.bytes = (((1u << (next - address)) - 1) << address % 4) & 15;
      enter_cell(locked.cell(address / 4));
      address = next;
    }
  }
  return found;
}

} // namespace sluice::emulator
