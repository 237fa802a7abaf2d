//===- pool_table.cpp - blocks that a program's allocator has made within a block -----------------------===//
#include "emulator/memory/pool_table.h"

#include <iterator>

namespace sluice::emulator {

std::vector<MemoryBlock> PoolTable::divide(const std::vector<MemoryBlock> &blocks) const {
  std::vector<MemoryBlock> divided;
  for (const MemoryBlock &block : blocks) {
    const auto pool = pools.find(block.address);
    // Another block may have taken the place of one that was freed without a word to its pool.
    if (pool == pools.end() || pool->second.serial != block.serial || block.freed) {
      divided.push_back(block);
      continue;
    }
    for (const auto &[address, piece] : pool->second.pieces) {
      MemoryBlock part = block; // with its serial: work of streams is compared by the block
      part.address = address;
      part.bytes = piece.bytes;
      part.freed = piece.freed;
      if (block.written) part.written = block.written + (address - block.address) / 4;
      divided.push_back(part);
    }
  }
  return divided;
}

PoolTable::Pool *PoolAnnotations::pool_of(uint64_t address) {
  const auto after = table.pools.upper_bound(address);
  if (after == table.pools.begin()) return nullptr;
  auto &[start, pool] = *std::prev(after);
  return address - start < pool.bytes ? &pool : nullptr;
}

bool PoolAnnotations::create(const MemoryBlock &block) {
  const std::lock_guard lock(mutex);
  const auto known = table.pools.find(block.address);
  if (known != table.pools.end() && known->second.serial == block.serial) return false;
  table.pools[block.address] = {block.bytes, block.serial, {}};
  current.reset();
  return true;
}

bool PoolAnnotations::destroy(uint64_t start) {
  const std::lock_guard lock(mutex);
  if (table.pools.erase(start) == 0) return false;
  current.reset();
  return true;
}

bool PoolAnnotations::allocate(uint64_t address, uint64_t bytes) {
  const std::lock_guard lock(mutex);
  PoolTable::Pool *const pool = pool_of(address);
  if (pool == nullptr || bytes == 0 || address % 4 != 0) return false;
  const uint64_t start = std::prev(table.pools.upper_bound(address))->first;
  if (bytes > pool->bytes - (address - start)) return false;
  auto first = pool->pieces.lower_bound(address);
  if (first != pool->pieces.begin()) {
    const auto before = std::prev(first);
    if (address - before->first < before->second.bytes) first = before;
  }
  auto last = first;
  for (; last != pool->pieces.end() && last->first < address + bytes; ++last)
    if (!last->second.freed) return false;
  pool->pieces.erase(first, last);
  pool->pieces[address] = {bytes, false};
  current.reset();
  return true;
}

bool PoolAnnotations::release(uint64_t address) {
  const std::lock_guard lock(mutex);
  PoolTable::Pool *const pool = pool_of(address);
  if (pool == nullptr) return false;
  const auto piece = pool->pieces.find(address);
  if (piece == pool->pieces.end() || piece->second.freed) return false;
  piece->second.freed = true;
  current.reset();
  return true;
}

std::shared_ptr<const PoolTable> PoolAnnotations::snapshot() const {
  const std::lock_guard lock(mutex);
  if (table.pools.empty()) return nullptr;
  if (!current) current = std::make_shared<const PoolTable>(table);
  return current;
}

} // namespace sluice::emulator
