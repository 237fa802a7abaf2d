//===- memory.h - device memory of the emulated machine -------------------------------------------------===//
//
// Device addresses are host addresses: the caller gets a pointer from here unchanged, and the machine
// dereferences it. Every access of a kernel is first looked up in a table of blocks. So a block has a red
// zone on either side, and a freed block stays in quarantine (no longer accessible, its address not reused)
// until the quarantine is full.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace sluice::emulator {

/// A virtual address of gfx942 has 48 bits: Linux's driver gives such a device 256 TiB (gmc_v9_0_sw_init).
constexpr uint64_t address_space_end = uint64_t(1) << 48;

/// Whether [address, address + bytes) is in the address space. False for a range that wraps.
constexpr bool in_address_space(uint64_t address, uint64_t bytes) {
  return address <= address_space_end && bytes <= address_space_end - address;
}

/// A range of addresses that kernels may access, until it is freed.
struct MemoryBlock {
  static constexpr uint8_t most_devices = 8;
  static constexpr uint8_t host = most_devices; // value of `device` for memory that all devices reach

  uint64_t address;
  uint64_t bytes;
  /// Counts allocations and attachments from 1, to tell apart two blocks at one address.
  uint64_t serial;
  bool writable;
  bool freed;
  /// True for attached host memory, false for memory allocated here.
  bool attached;
  /// A byte per dword, with a bit per byte of it that is set once the byte has been written. Null: everything
  /// counts as written.
  uint8_t *written = nullptr;
  uint8_t device = host;
  /// Set for a launch: memory of a device that the launching one cannot access. `freed` is set, too.
  bool foreign = false;
  /// Not null: addresses of a service that the machine lacks, and its name for reports. `freed` is set, too.
  const char *missing_service = nullptr;

  bool contains(uint64_t first, uint64_t count) const {
    return first >= address && count <= bytes && first - address <= bytes - count;
  }
};

/// Whether all of a range has been written; the range must be in the block.
bool is_written(const MemoryBlock &block, uint64_t address, uint64_t bytes);
/// Thread-safe.
void mark_written(const MemoryBlock &block, uint64_t address, uint64_t bytes);

/// Pages of the host, unmapped when the last reference goes.
class Pages {
public:
  Pages(void *start, uint64_t bytes) : start(start), bytes(bytes) {}
  ~Pages();
  Pages(const Pages &) = delete;
  Pages &operator=(const Pages &) = delete;

private:
  void *const start;
  const uint64_t bytes;
};
using HeldPages = std::vector<std::shared_ptr<const Pages>>;

/// The blocks at one moment, sorted by address. Their memory, freed or not, exists as long as the table does.
/// Immutable: a launch keeps the one it started with.
class BlockTable {
public:
  explicit BlockTable(std::vector<MemoryBlock> blocks, HeldPages pages = {});

  /// The block that contains `address`, else the nearest block within a red zone of it, else null.
  const MemoryBlock *nearest(uint64_t address) const;
  /// The block that contains all of [address, address + bytes), freed or not; else null.
  const MemoryBlock *find(uint64_t address, uint64_t bytes) const;
  const std::vector<MemoryBlock> &blocks() const { return sorted; }

private:
  std::vector<MemoryBlock> sorted;
  HeldPages held;
};

/// Bytes of one block that a piece of work has touched.
struct MemoryUse {
  enum class Kind : uint8_t { read, write, atomic, allocate, release };
  uint64_t start;
  uint64_t end;
  uint64_t block; // its serial number
  Kind kind;
};

/// All functions are thread-safe.
class Memory {
public:
  static constexpr uint64_t alignment = 4096;
  static constexpr uint64_t red_zone_bytes = 64 << 10;

  explicit Memory(uint64_t capacity_bytes = uint64_t(192) << 30, uint64_t quarantine_bytes = uint64_t(64)
                                                                                             << 20);
  Memory(const Memory &) = delete;
  Memory &operator=(const Memory &) = delete;

  /// Whether fresh memory may be read before it is written.
  enum class Contents : uint8_t { defined, undefined };

  /// Allocates `bytes` of device memory, filled with a pattern that no program expects. Null if the capacity
  /// (each device's, and the host's) or the host's memory is exhausted, or if `bytes` is 0.
  void *allocate(uint64_t bytes, Contents contents = Contents::defined, uint8_t device = 0);
  /// False unless `address` is the start of a live block allocated here.
  bool release(const void *address);

  /// Lets kernels access host memory (pinned or registered memory, the image of a code object). Returns false
  /// if it overlaps a live block, is empty or leaves the address space.
  bool attach(const void *address, uint64_t bytes, bool writable, uint8_t device = MemoryBlock::host);
  bool detach(const void *address);

  /// The host has written [address, address + bytes), which may be anywhere.
  void mark_written(const void *address, uint64_t bytes);
  /// The host has copied: bytes never written at `from` count as never written at `to`.
  void copy_written(const void *to, const void *from, uint64_t bytes);

  /// Everything in live blocks counts as written from now on, for the launches that start later.
  void count_as_written();

  /// The live block that contains `address`.
  std::optional<MemoryBlock> find(const void *address) const;

  std::shared_ptr<const BlockTable> snapshot() const;

  uint64_t capacity_bytes() const { return capacity; }
  /// Bytes of live blocks allocated here.
  uint64_t used_bytes(uint8_t device = 0) const;

private:
  struct Region {
    MemoryBlock block;
    std::shared_ptr<const Pages> pages; // with both red zones; null for attached blocks
    std::shared_ptr<const Pages> map;   // map of what was written; nullable
  };

  void trim_quarantine();

  const uint64_t capacity;
  const uint64_t quarantine_limit;
  mutable std::mutex mutex;
  std::map<uint64_t, Region> regions; // by start address; live and quarantined
  std::deque<uint64_t> quarantine;    // start addresses, oldest first
  std::array<uint64_t, MemoryBlock::most_devices + 1> used{};
  uint64_t quarantined = 0;
  uint64_t next_serial = 1;
  mutable std::shared_ptr<const BlockTable> current; // null after a change
};

} // namespace sluice::emulator
