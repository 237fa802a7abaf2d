//===- lds_epoch.h - accesses of LDS since the last barrier, by whole instructions ----------------------===//
//
// Most accesses conflict with nothing, and at the next barrier nobody asks for them again. So an instruction
// whose lanes surely conflict with nothing is kept as it is, and goes into the shadow's cells only when
// something else may meet it. Whether it may is decided by sets that say too much rather than too little:
// dwords that were stored, and for each wave blocks of LDS.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "emulator/check/dword_set.h"

namespace sluice::emulator {

enum class LdsUse : uint8_t { read, store, atomic };

/// An instruction of a wave.
struct LdsBy {
  LdsUse use;
  uint32_t wave;
  uint32_t op;
  uint32_t number; // in the workgroup
};

/// What an instruction accesses: whole dwords in some lanes.
struct LdsAccesses {
  LdsBy by;
  uint32_t bytes;
  uint64_t lanes;
  std::array<uint32_t, wave_lanes> addresses;
};

class LdsEpoch {
public:
  static constexpr uint32_t most_waves = 16;

  void reset(uint32_t lds_bytes);
  /// A barrier: what came before it is in order with what comes after.
  void next() {
    kept.clear();
    kept_range = {};
    forget_uses();
  }
  /// Keeps accesses if none of them can conflict with one of this epoch or of the same instruction.
  bool keep(const LdsBy &by, const LdsLanes &at);
  /// Notes an access that goes into the cells at once.
  void note(LdsUse use, const LdsRange &range, uint32_t wave);
  bool may_meet(const LdsRange &range) const { return range.meets(kept_range); }
  /// Whether another instruction can be kept before the others are released.
  bool has_room() {
    if (kept.size() == most_kept) drop_repeated_reads();
    return kept.size() < most_kept;
  }
  /// Hands over the instructions that were kept, in order.
  template <class Enter> void release(Enter &&enter) {
    kept_range = {};
    for (const LdsAccesses &accesses : kept)
      enter(accesses);
    kept.clear();
  }

private:
  static constexpr size_t most_kept = 1024;
  using Blocks = uint64_t; // a bit for each of 64 parts of LDS

  void drop_repeated_reads();
  void forget_uses();
  Blocks blocks_of(const LdsRange &range) const;
  Blocks blocks_of(const LdsLanes &at) const;
  Blocks others(const std::array<Blocks, most_waves> &blocks, uint32_t wave) const;
  bool take_dwords(const LdsLanes &at);

  std::vector<LdsAccesses> kept;
  LdsRange kept_range;
  DwordSet stored;   // by plain stores and copies
  DwordSet combined; // by atomics, and some in between
  std::array<Blocks, most_waves> read_blocks{};
  std::array<Blocks, most_waves> stored_blocks{}; // atomics too
  uint32_t waves = 0;                             // that have any
  uint32_t block_shift = 0;
};

} // namespace sluice::emulator
