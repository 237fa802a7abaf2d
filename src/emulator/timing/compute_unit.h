//===- compute_unit.h - four SIMDs issuing instructions -------------------------------------------------===//
//
// The SIMDs take turns, one each clk. In its turn a SIMD goes through its waves, highest priority and then
// oldest first, and issues the next instruction of each wave whose slot is still free this turn and whose
// pipe is free. An instruction runs on the machine when it issues. The work that it starts ends at a known
// clk, and s_waitcnt holds its wave back until then.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "emulator/machine/launch_setup.h"
#include "emulator/timing/counter_watch.h"
#include "emulator/timing/lds_ports.h"
#include "emulator/timing/memory_levels.h"
#include "emulator/timing/observer.h"
#include "emulator/timing/op_timing.h"
#include "emulator/timing/workgroup_source.h"

namespace sluice::emulator::timing {

constexpr uint64_t never = ~uint64_t(0);

class ComputeUnit {
public:
  /// `number` counts the simulated ones; `observer` and `counters` may be null.
  ComputeUnit(uint32_t number, uint32_t xcd, LaunchState &launch, const std::vector<OpTiming> &timings,
              SharedLevels &shared, WorkgroupSource &source, TimingResult &result, Observer *observer,
              CounterWatch *counters);
  ~ComputeUnit();

  /// Makes room for one more workgroup at a time, from now on.
  void add_place();
  /// The clk of the next turn in which something may happen; `never` when all workgroups have ended.
  uint64_t next_turn() const;
  void take_turn();
  /// Adds the time that the memory paths were busy to the result, and reports waits that have not ended.
  void finish();

private:
  struct TimedWave;
  struct Resident;
  struct Simd;

  struct Blocked {
    Stall reason;
    uint64_t until; // 0: not blocked
  };

  void start(Resident &resident, uint64_t clk);
  Blocked blocked(const Simd &simd, const TimedWave &wave, const OpTiming &timing, const Op &op,
                  uint64_t clk) const;
  bool overlaps_packed_result(const TimedWave &wave, const Op &op) const;
  void issue(Simd &simd, TimedWave &wave, const OpTiming &timing, uint64_t clk);
  Occupation occupy(Simd &simd, TimedWave &wave, const OpTiming &timing, const Op &op, uint64_t clk);
  void reach_barrier(TimedWave &wave, uint64_t clk);
  void release_barrier(Resident &resident, uint64_t clk);
  void end_wave(TimedWave &wave, uint64_t clk);
  void hold(TimedWave &wave, uint64_t until, Stall reason, uint32_t op);
  WaveName name_of(const TimedWave &wave) const;
  void observe_wait(const TimedWave &wave, uint64_t until);
  void end_idle_time(Simd &simd, TimedWave &wave, const Op &op, uint64_t clk);

  const uint32_t number;
  LaunchState &launch;
  const std::vector<OpTiming> &timings;
  WorkgroupSource &source;
  TimingResult &result;
  Observer *const observer;
  CounterWatch *const counters;
  const MemoryTraffic &traffic; // by all simulated compute units
  VectorMemory memory;
  LdsPorts lds;
  std::vector<std::unique_ptr<Resident>> residents;
  std::unique_ptr<std::array<Simd, simds>> units;
  uint32_t next_simd = 0; // for the next wave that starts, among equally full ones
  uint64_t age = 0;       // waves started
};

} // namespace sluice::emulator::timing
