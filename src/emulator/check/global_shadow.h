//===- global_shadow.h - which workgroup touched which dword of memory ----------------------------------===//
//
// Two accesses of one dword by different workgroups, one of them a store, must be ordered (see
// happens_before.h). The shadow of a launch remembers the last store and the last load of each dword. Atomics
// do not conflict with each other; a load or store with sc1 counts as one.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "emulator/check/happens_before.h"
#include "emulator/memory/memory.h"

namespace sluice::emulator {

struct GlobalAccess {
  bool load = false; // set for atomics as well
  bool store = false;
  bool atomic = false; // or an access with sc1
  bool scalar = false;
  uint32_t op = 0;
};

struct GlobalConflict {
  AccessOrder order = AccessOrder::before; // before: no conflict
  uint32_t lane = 0;
  bool with_store = false; // the earlier access is a store
  uint32_t op = 0;         // its instruction
  uint32_t wave = 0;       // its number in the launch
};

class GlobalShadow {
public:
  /// The pages that a wave used last.
  class Pages {
    friend class GlobalShadow;
    struct Entry {
      uint64_t number = ~uint64_t(0);
      struct Page *page = nullptr;
    };
    std::array<Entry, 16> entries{};
  };

  GlobalShadow();
  ~GlobalShadow();

  /// Enters accesses of `bytes` bytes at the addresses of the lanes, made at `when` (a moment of the wave).
  /// Returns the first conflict.
  GlobalConflict enter(Pages &pages, const WaveOrder &wave, uint32_t when, const uint64_t *addresses,
                       uint64_t lanes, uint32_t bytes, GlobalAccess access);

  /// Everything that was touched, by dwords, once the launch has ended. `block` is left 0.
  std::vector<MemoryUse> uses() const;

private:
  class Locked;
  struct Page &page_of(Pages &pages, uint64_t number);

  struct Shard {
    std::mutex mutex;
    std::unordered_map<uint64_t, std::unique_ptr<struct Page>> pages;
  };
  std::array<Shard, 16> shards;
};

} // namespace sluice::emulator
