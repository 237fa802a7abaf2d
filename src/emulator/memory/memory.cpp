//===- memory.cpp - device memory of the emulated machine -----------------------------------------------===//
#include "emulator/memory/memory.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include <sys/mman.h>

namespace sluice::emulator {

namespace {

// As a float, a NaN in every format; as an address, far outside any buffer.
constexpr int fresh_byte = 0xff;
constexpr int freed_byte = 0xfe;
constexpr uint64_t fill_limit = uint64_t(64) << 20; // larger blocks are left as zero pages until touched

uint64_t round_up(uint64_t value, uint64_t unit) {
  return (value + unit - 1) / unit * unit;
}

uint64_t map_bytes(uint64_t bytes) {
  return round_up((bytes + 3) / 4, Memory::alignment);
}

/// Nulls if the host has no more memory.
std::pair<void *, std::shared_ptr<const Pages>> map_pages(uint64_t bytes) {
  void *pages =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (pages == MAP_FAILED) return {};
  return {pages, std::make_shared<const Pages>(pages, bytes)};
}

/// Visits each map entry that [offset, offset + bytes) touches, with the bits it touches there.
template <class Visit> void visit_map(uint8_t *map, uint64_t offset, uint64_t bytes, Visit &&visit) {
  const uint64_t end = offset + bytes;
  while (offset < end) {
    const uint64_t next = std::min(end, (offset / 4 + 1) * 4);
    visit(map[offset / 4], uint8_t(((1u << (next - offset)) - 1) << offset % 4));
    offset = next;
  }
}

} // namespace

//===--- What was written -------------------------------------------------------------------------------===//

bool is_written(const MemoryBlock &block, uint64_t address, uint64_t bytes) {
  if (!block.written) return true;
  bool all = true;
  visit_map(block.written, address - block.address, bytes, [&](uint8_t &entry, uint8_t bits) {
    all = all && (std::atomic_ref(entry).load(std::memory_order_relaxed) & bits) == bits;
  });
  return all;
}

void mark_written(const MemoryBlock &block, uint64_t address, uint64_t bytes) {
  if (!block.written) return;
  auto mark = [&](uint64_t offset, uint64_t count) {
    visit_map(block.written, offset, count, [](uint8_t &entry, uint8_t bits) {
      const std::atomic_ref<uint8_t> shared(entry);
      if ((shared.load(std::memory_order_relaxed) & bits) != bits)
        shared.fetch_or(bits, std::memory_order_relaxed);
    });
  };
  const uint64_t start = address - block.address;
  const uint64_t end = start + bytes;
  const uint64_t first_whole = (start + 3) / 4;
  const uint64_t whole_end = end / 4;
  if (whole_end < first_whole + 16) return mark(start, bytes);
  mark(start, first_whole * 4 - start);
  std::memset(block.written + first_whole, 15, whole_end - first_whole);
  mark(whole_end * 4, end - whole_end * 4);
}

//===--- BlockTable -------------------------------------------------------------------------------------===//

Pages::~Pages() {
  munmap(start, bytes);
}

BlockTable::BlockTable(std::vector<MemoryBlock> blocks, HeldPages pages)
    : sorted(std::move(blocks)), held(std::move(pages)) {
  std::sort(sorted.begin(), sorted.end(),
            [](const MemoryBlock &a, const MemoryBlock &b) { return a.address < b.address; });
}

const MemoryBlock *BlockTable::find(uint64_t address, uint64_t bytes) const {
  auto after =
      std::upper_bound(sorted.begin(), sorted.end(), address,
                       [](uint64_t value, const MemoryBlock &block) { return value < block.address; });
  if (after == sorted.begin()) return nullptr;
  const MemoryBlock &block = *--after;
  return block.contains(address, bytes) ? &block : nullptr;
}

const MemoryBlock *BlockTable::nearest(uint64_t address) const {
  const auto after =
      std::upper_bound(sorted.begin(), sorted.end(), address,
                       [](uint64_t value, const MemoryBlock &block) { return value < block.address; });
  const MemoryBlock *best = nullptr;
  uint64_t distance = Memory::red_zone_bytes;
  auto consider = [&](const MemoryBlock &block) {
    const uint64_t end = block.address + block.bytes;
    const uint64_t away = address < block.address ? block.address - address
                          : address < end         ? 0
                                                  : address - end;
    if (away > distance) return;
    distance = away;
    best = &block;
  };
  if (after != sorted.end()) consider(*after);
  if (after != sorted.begin()) consider(*std::prev(after));
  return best;
}

//===--- Memory -----------------------------------------------------------------------------------------===//

Memory::Memory(uint64_t capacity_bytes, uint64_t quarantine_bytes)
    : capacity(capacity_bytes), quarantine_limit(quarantine_bytes) {}

void *Memory::allocate(uint64_t bytes, Contents contents, uint8_t device) {
  const std::lock_guard lock(mutex);
  if (bytes == 0 || bytes > capacity - used[device]) return nullptr;
  const uint64_t mapping_bytes = round_up(bytes, alignment) + 2 * red_zone_bytes;
  // The red zones are mapped too: with checks off, a kernel's small overrun must not end the process.
  auto [mapping, pages] = map_pages(mapping_bytes);
  if (!mapping) return nullptr;
  uint8_t *written = nullptr;
  std::shared_ptr<const Pages> map;
  if (contents == Contents::undefined) {
    auto [start, kept] = map_pages(map_bytes(bytes));
    if (!start) return nullptr;
    written = static_cast<uint8_t *>(start);
    map = std::move(kept);
  }
  void *start = static_cast<char *>(mapping) + red_zone_bytes;
  if (bytes <= fill_limit) std::memset(start, fresh_byte, bytes);
  const uint64_t address = reinterpret_cast<uint64_t>(start);
  regions[address] = {
      {address, bytes, next_serial++, true, false, false, written, device}, std::move(pages), std::move(map)};
  used[device] += bytes;
  current.reset();
  return start;
}

bool Memory::release(const void *address) {
  const std::lock_guard lock(mutex);
  const auto found = regions.find(reinterpret_cast<uint64_t>(address));
  if (found == regions.end() || found->second.block.attached || found->second.block.freed) return false;
  MemoryBlock &block = found->second.block;
  block.freed = true;
  if (block.bytes <= fill_limit)
    std::memset(reinterpret_cast<void *>(block.address), freed_byte, block.bytes);
  used[block.device] -= block.bytes;
  quarantined += block.bytes;
  quarantine.push_back(block.address);
  trim_quarantine();
  current.reset();
  return true;
}

void Memory::trim_quarantine() {
  while (quarantined > quarantine_limit && !quarantine.empty()) {
    const auto oldest = regions.find(quarantine.front());
    quarantine.pop_front();
    quarantined -= oldest->second.block.bytes;
    regions.erase(oldest);
  }
}

bool Memory::attach(const void *address, uint64_t bytes, bool writable, uint8_t device) {
  const std::lock_guard lock(mutex);
  const uint64_t start = reinterpret_cast<uint64_t>(address);
  if (bytes == 0 || !in_address_space(start, bytes)) return false;
  const auto after = regions.lower_bound(start);
  if (after != regions.end() && after->first < start + bytes) return false;
  if (after != regions.begin()) {
    const MemoryBlock &before = std::prev(after)->second.block;
    if (before.address + before.bytes > start) return false;
  }
  regions[start] = {{start, bytes, next_serial++, writable, false, true, nullptr, device}, nullptr, nullptr};
  current.reset();
  return true;
}

bool Memory::detach(const void *address) {
  const std::lock_guard lock(mutex);
  const auto found = regions.find(reinterpret_cast<uint64_t>(address));
  if (found == regions.end() || !found->second.block.attached) return false;
  regions.erase(found);
  current.reset();
  return true;
}

void Memory::mark_written(const void *address, uint64_t bytes) {
  const uint64_t at = reinterpret_cast<uint64_t>(address);
  const std::shared_ptr<const BlockTable> table = snapshot();
  const MemoryBlock *block = table->find(at, bytes);
  if (block && !block->freed) emulator::mark_written(*block, at, bytes);
}

void Memory::copy_written(const void *to, const void *from, uint64_t bytes) {
  const uint64_t target = reinterpret_cast<uint64_t>(to);
  const uint64_t source = reinterpret_cast<uint64_t>(from);
  const std::shared_ptr<const BlockTable> table = snapshot();
  const MemoryBlock *block = table->find(target, bytes);
  const MemoryBlock *origin = table->find(source, bytes);
  if (!block || block->freed || !block->written) return;
  if (!origin || !origin->written) return emulator::mark_written(*block, target, bytes);
  for (uint64_t i = 0; i < bytes; ++i) {
    uint8_t &entry = block->written[(target + i - block->address) / 4];
    const uint8_t bit = uint8_t(1u << (target + i - block->address) % 4);
    const std::atomic_ref<uint8_t> shared(entry);
    if (is_written(*origin, source + i, 1))
      shared.fetch_or(bit, std::memory_order_relaxed);
    else
      shared.fetch_and(uint8_t(~bit), std::memory_order_relaxed);
  }
}

void Memory::count_as_written() {
  const std::lock_guard lock(mutex);
  for (auto &[address, region] : regions) {
    region.block.written = nullptr;
    region.map.reset(); // running launches keep theirs
  }
  current.reset();
}

std::optional<MemoryBlock> Memory::find(const void *address) const {
  const std::lock_guard lock(mutex);
  const uint64_t at = reinterpret_cast<uint64_t>(address);
  auto after = regions.upper_bound(at);
  if (after == regions.begin()) return std::nullopt;
  const MemoryBlock &block = std::prev(after)->second.block;
  if (block.freed || !block.contains(at, 1)) return std::nullopt;
  return block;
}

std::shared_ptr<const BlockTable> Memory::snapshot() const {
  const std::lock_guard lock(mutex);
  if (!current) {
    std::vector<MemoryBlock> blocks;
    HeldPages held;
    for (const auto &[address, region] : regions) {
      blocks.push_back(region.block);
      for (const auto &pages : {region.pages, region.map})
        if (pages) held.push_back(pages);
    }
    current = std::make_shared<const BlockTable>(std::move(blocks), std::move(held));
  }
  return current;
}

uint64_t Memory::used_bytes(uint8_t device) const {
  const std::lock_guard lock(mutex);
  return used[device];
}

} // namespace sluice::emulator
