//===- happens_before.h - the order of accesses of different workgroups ---------------------------------===//
//
// Workgroups of one dispatch run in no particular order, except where one releases at an atomic and another
// acquires there. On gfx942 the atomic is not enough (AMDGPUUsage, "Memory Model gfx942"). The writer's
// stores must be complete (s_waitcnt vmcnt) and written back from its L2 (buffer_wbl2 sc1) before the atomic,
// and the reader must drop what its caches hold (buffer_inv sc1) after it. A store or load with sc1 bypasses
// the caches and needs neither.
//
// Each wave counts its vector memory instructions and, separately, its scalar ones, which vmcnt does not wait
// for. A moment of a wave is such a count. A wave knows of another wave up to which moment its accesses are
// done, and up to which its stores are written back. For the scalar cache only the order of accesses is
// tracked.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <mutex>
#include <span>
#include <unordered_map>

namespace sluice::emulator {

/// Moments of a wave: until when its accesses and its scalar accesses are done, and its stores written back.
struct Moments {
  uint32_t done = 0;
  uint32_t written_back = 0;
  uint32_t scalar_done = 0;

  void join(Moments other) {
    done = std::max(done, other.done);
    written_back = std::max(written_back, other.written_back);
    scalar_done = std::max(scalar_done, other.scalar_done);
  }
  bool none() const { return (done | scalar_done) == 0; }
};

/// By number of the wave in the launch.
using KnownWaves = std::unordered_map<uint32_t, Moments>;
void join(KnownWaves &to, const KnownWaves &from);

/// The atomics of a launch: for each address, what the waves that released there had known.
class ReleasedAtomics {
public:
  /// `version` changes with `known`: releasing the same again costs nothing.
  void release(uint64_t address, uint32_t wave, uint64_t version, const KnownWaves &known);
  /// Adds what was released there.
  void acquire(uint64_t address, KnownWaves &known);

private:
  struct Variable {
    KnownWaves known;
    std::unordered_map<uint32_t, uint64_t> versions; // by wave
  };
  struct Shard {
    std::mutex mutex;
    std::unordered_map<uint64_t, Variable> variables;
  };
  Shard &shard_of(uint64_t address) { return shards[address / 4 % shards.size()]; }

  std::array<Shard, 64> shards;
};

/// An access made earlier.
struct EarlierAccess {
  uint32_t wave = 0; // number in the launch
  uint32_t moment = 0;
  bool store = false;
  bool written_through = false; // an atomic, or with sc1
  bool scalar = false;
};

/// The order of an earlier access of another workgroup and one that is made now.
enum class AccessOrder : uint8_t {
  before,           // comes before, and is visible
  not_written_back, // comes before, but its store may still be in the writer's L2
  not_invalidated,  // comes before, but older data may still be in the reader's caches
  none,
};

/// What one wave knows of the others.
class WaveOrder {
public:
  static constexpr uint32_t most_waves = 16;

  /// `first` is the launch's number of the workgroup's first wave; `wave` is this wave's number among its
  /// `waves`.
  void start(uint32_t first, uint32_t wave, uint32_t waves);

  uint32_t number() const { return first + own; }
  /// The moment of the last vector memory instruction, and the next one's.
  uint32_t now() const { return moment; }
  uint32_t advance() {
    clean = false;
    return ++moment;
  }
  /// The same for scalar memory instructions.
  uint32_t scalar_now() const { return scalar_moment; }
  uint32_t advance_scalar() { return ++scalar_moment; }

  /// Sets up to which moments the wave's accesses are done. Call it before any of the functions that follow.
  void set_done(uint32_t until, uint32_t scalar_until);
  /// buffer_wbl2, which is a vector memory instruction as well: the next one.
  void write_back();
  /// Releases at each of the addresses of one instruction.
  void release(ReleasedAtomics &atomics, std::span<const uint64_t> addresses);
  void acquire(ReleasedAtomics &atomics, uint64_t address);
  void invalidate();
  /// After a barrier of all workgroups. What this workgroup's caches dropped before it stays out until a wave
  /// of it accesses memory.
  void acquire_at_barrier(ReleasedAtomics &atomics, uint64_t address);
  /// The waves of a workgroup have met at a barrier: what one knows, all know. They share their caches.
  static void meet(std::span<WaveOrder *const> waves);

  bool same_workgroup(uint32_t wave) const { return wave - first < waves; }
  /// `past_caches`: the access made now is a store, or a load with sc1.
  AccessOrder order_of(const EarlierAccess &earlier, bool past_caches) const;

private:
  uint32_t first = 0;
  uint32_t own = 0;
  uint32_t waves = 0;
  uint32_t moment = 0;
  uint32_t scalar_moment = 0;
  uint32_t write_back_issued = 0;
  uint64_t version = 1; // changes with what a release would publish
  bool clean =
      false; // the caches were invalidated, and no wave of the workgroup known here has used them since
  std::array<Moments, most_waves> group{}; // waves of this workgroup
  KnownWaves others;                       // acquired, and safe to rely on
  KnownWaves arrived;                      // acquired, but the caches have not been invalidated since
};

} // namespace sluice::emulator
