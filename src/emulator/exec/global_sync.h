//===- global_sync.h - global wave sync: barriers for all workgroups of a launch ------------------------===//
//
// State of ds_gws_init and ds_gws_barrier, for cooperative launches only: 64 resources, each a number of
// waves that have not arrived yet. A waiting wave does not run; all workgroups are resident, so the others
// do. If none of them can ever arrive, this is detected instead of waiting forever.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>

namespace sluice::emulator {

class GlobalSync {
public:
  static constexpr uint32_t resource_count = 64;

  /// Like HIP's runtime, prepares resource 0 for one wave of each workgroup before the launch.
  explicit GlobalSync(uint64_t workgroups);

  /// Makes a barrier for `others` waves and one more.
  void init(uint32_t resource, uint32_t others);
  enum class Arrival : uint8_t { last, waits, not_ready }; // not_ready: it was never initialised
  /// The last wave lets all waves go on and prepares the next round, for `others` waves and one more. A
  /// waiting wave goes on when this round has passed.
  Arrival arrive(uint32_t resource, uint32_t others, uint64_t &round);
  bool passed(uint32_t resource, uint64_t round) const { return rounds[resource] != round; }

  /// Counts the barriers passed on all resources.
  uint64_t moment() const { return moments; }
  /// No wave of a workgroup could go on at `now`; `since` is the workgroup's own, 0 at its start. Returns
  /// true if no wave of the launch ever will.
  bool stuck(uint64_t now, uint64_t &since);
  void workgroup_ended();

private:
  struct Resource {
    bool ready = false;
    uint32_t to_come = 0; // before the last one
  };

  std::mutex mutex;
  std::array<Resource, resource_count> resources;
  std::array<std::atomic<uint64_t>, resource_count> rounds{};
  std::atomic<uint64_t> moments = 1;
  uint64_t running;     // workgroups that have not ended
  uint64_t waiting = 0; // those of them that have been stuck since the last moment
};

} // namespace sluice::emulator
