//===- global_shadow.h - which wave touched which dword of memory ---------------------------------------===//
//
// Two accesses of one dword by different waves, one of them a store, must be ordered (see happens_before.h).
// The shadow of a launch remembers, for each dword, the last store and the last loads by two workgroups.
// Atomics do not conflict with each other; a load or store with sc1 counts as one. An atomic replaces those
// before it at its dword: whatever its wave does there later comes after all of them.
//
// An instruction is entered as a whole: the dwords that it touches in a line of memory are one mask, and so
// is what a line remembers of an earlier one.
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

#include "emulator/check/first_reads.h"
#include "emulator/check/footprint.h"
#include "emulator/check/happens_before.h"
#include "emulator/check/line_records.h"
#include "emulator/memory/memory.h"

namespace sluice::emulator {

struct GlobalAccess {
  bool load = false; // set for atomics as well
  bool store = false;
  bool atomic = false; // or an access with sc1
  bool scalar = false;
  uint32_t op = 0;
  bool compares = false; // an atomic that compares and swaps

  bool combines() const { return load && store; }
};

struct GlobalConflict {
  AccessOrder order = AccessOrder::before; // before: no conflict
  bool equal = false;                      // both store the same value
  uint32_t lane = 0;
  bool with_store = false; // the earlier access is a store
  uint32_t op = 0;         // its instruction
  uint32_t wave = 0;       // its number in the launch
};

/// What a store will write: rows of dwords, whose low bits count after a shift. No rows: not known.
struct StoredRows {
  const uint32_t *rows = nullptr;
  uint32_t shift = 0;

  uint8_t byte(uint32_t lane, uint32_t offset) const {
    return uint8_t(rows[offset / 4 * line_dwords + lane] >> shift >> 8 * (offset % 4));
  }
};

class GlobalShadow {
public:
  /// The pages that a workgroup used last.
  class Pages {
    friend class GlobalShadow;
    struct Entry {
      uint64_t number = ~uint64_t(0);
      struct Page *page = nullptr;
    };
    std::array<Entry, 256> entries{};
  };

  GlobalShadow();
  ~GlobalShadow();

  /// Enters the accesses of an instruction, made at `when` (a moment of the wave), before they change memory.
  /// Returns the most serious conflict, that of the first lane if there are several.
  GlobalConflict enter(Pages &pages, const WaveOrder &wave, uint32_t when, const Footprint &footprint,
                       GlobalAccess access, StoredRows stored = {});

  /// Everything that was touched, by dwords, once the launch has ended. `block` is left 0.
  std::vector<MemoryUse> uses() const;

  /// Loads that met atomics of other waves, once the launch has ended.
  const FirstReads &first_reads() const { return reads; }

private:
  class Locked;
  class Entering;
  struct Page &page_of(Pages &pages, uint64_t number);

  struct Shard {
    std::mutex mutex;
    std::unordered_map<uint64_t, std::unique_ptr<struct Page>> pages;
  };
  std::array<Shard, 16> shards;
  FirstReads reads;
};

} // namespace sluice::emulator
