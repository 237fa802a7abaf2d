//===- pool_table.h - blocks that a program's allocator has made within a block -------------------------===//
//
// An allocator that takes large blocks from the device and hands out pieces of them hides overruns: a kernel
// that leaves its piece stays within the block. The allocator may say which pieces it has handed out; a
// launch may then access only those of the moment at which it was submitted.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "emulator/memory/memory.h"

namespace sluice::emulator {

/// Pools and their pieces at one moment. Immutable.
class PoolTable {
public:
  struct Piece {
    uint64_t bytes;
    bool freed;
  };
  struct Pool {
    uint64_t bytes;
    uint64_t serial;                  // of the block that the pool is
    std::map<uint64_t, Piece> pieces; // by start address; freed ones until others take their place
  };

  /// The blocks with each pool in place of its block.
  std::vector<MemoryBlock> divide(const std::vector<MemoryBlock> &blocks) const;

private:
  friend class PoolAnnotations;
  std::map<uint64_t, Pool> pools; // by start address
};

/// All functions are thread-safe. Those that return false have changed nothing.
class PoolAnnotations {
public:
  /// Makes a live block a pool without pieces. False if it is one already.
  bool create(const MemoryBlock &block);
  /// The block is an ordinary one again. False if no pool starts there.
  bool destroy(uint64_t start);
  /// False unless the range is in one pool, starts at a multiple of 4, is not empty, and overlaps no live
  /// piece.
  bool allocate(uint64_t address, uint64_t bytes);
  /// False unless a live piece starts there.
  bool release(uint64_t address);

  /// Null without pools.
  std::shared_ptr<const PoolTable> snapshot() const;

private:
  PoolTable::Pool *pool_of(uint64_t address);

  mutable std::mutex mutex;
  PoolTable table;
  mutable std::shared_ptr<const PoolTable> current; // null after a change
};

} // namespace sluice::emulator
