//===- happens_before.h - the order of accesses of different waves --------------------------------------===//
//
// Workgroups of one dispatch run in no particular order, except where one releases at an atomic and another
// acquires there. On gfx942 the atomic is not enough (AMDGPUUsage, "Memory Model gfx942"). The writer's
// stores must be complete (s_waitcnt vmcnt) and written back from its L2 (buffer_wbl2 sc1) before the atomic,
// and the reader must drop what its caches hold (buffer_inv sc1) after it. A store or load with sc1 bypasses
// the caches and needs neither.
//
// The waves of one workgroup share a compute unit, which keeps their vector accesses in the order of issue,
// and its caches. They need a barrier or an atomic between two accesses, but no wait and no cache operation.
// Scalar accesses take another path and must be waited for. A write-back is in that order as well: behind a
// barrier, it carries what the other waves have issued, and when it is done, so are their accesses.
//
// Each wave counts its vector memory instructions and, separately, its scalar ones, which vmcnt does not wait
// for. A moment of a wave is such a count. A wave knows of another wave up to which moment its accesses are
// issued and done, and up to which its stores are written back. For the scalar cache only the order of
// accesses is tracked.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "emulator/check/released_atomics.h"

namespace sluice::emulator {

/// An access made earlier.
struct EarlierAccess {
  uint32_t wave = 0; // number in the launch
  uint32_t moment = 0;
  bool store = false;
  bool written_through = false; // an atomic, or with sc1
  bool scalar = false;
};

/// The access made now, as far as its order after an earlier one depends on it.
struct LaterAccess {
  bool past_caches = false; // a store, or a load with sc1
  bool scalar = false;
};

/// The order of an earlier access of another wave and one that is made now.
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
  uint32_t first_wave() const { return first; }
  /// How many barriers the wave has passed.
  uint32_t epoch() const { return barriers; }
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
  /// Releases at the dwords of one instruction.
  void release(ReleasedAtomics &atomics, std::span<const LinePart> parts);
  void acquire(ReleasedAtomics &atomics, const LinePart &part);
  void invalidate();
  /// After a barrier of all workgroups. What this workgroup's caches dropped before it stays out until a wave
  /// of it accesses memory.
  void acquire_at_barrier(ReleasedAtomics &atomics, const LinePart &part);
  /// The waves of a workgroup have met at a barrier: what one knows, all know. They share their caches.
  static void meet(std::span<WaveOrder *const> waves);

  bool same_workgroup(uint32_t wave) const { return wave - first < waves; }
  AccessOrder order_of(const EarlierAccess &earlier, LaterAccess later) const;
  /// Whether an atomic has told something of another wave of the workgroup that no barrier had.
  bool has_heard_from(uint32_t wave) const;

private:
  AccessOrder order_in_workgroup(const EarlierAccess &earlier, LaterAccess later) const;

  uint32_t first = 0;
  uint32_t own = 0;
  uint32_t waves = 0;
  uint32_t barriers = 0;
  uint32_t moment = 0;
  uint32_t scalar_moment = 0;
  uint32_t write_back_issued = 0;
  uint64_t version = 1; // changes with what a release would publish
  bool clean =
      false; // the caches were invalidated, and no wave of the workgroup known here has used them since
  std::array<Moments, most_waves> group{}; // waves of this workgroup
  /// Until when the stores of each wave of the workgroup will be done and written back, once the last
  /// buffer_wbl2 is done.
  std::array<uint32_t, most_waves> being_written_back{};
  VectorClock others;  // acquired, and safe to rely on
  VectorClock arrived; // acquired, but the caches have not been invalidated since
  Shared<PublishedClock> published;
  uint64_t published_version = 0;
};

} // namespace sluice::emulator
