//===- workgroup.h - one workgroup, running -------------------------------------------------------------===//
//
// Waves of a workgroup take turns on one host thread: each runs to a barrier, to its end or until it has used
// up its slice. All storage is kept for the next workgroup.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "emulator/check/inexact_values.h"
#include "emulator/check/wave_checks.h"
#include "emulator/machine/program.h"

namespace sluice::emulator {

/// State that all workgroups of a launch share.
struct LaunchState {
  const ProgramImpl *program;
  const package::Kernel *kernel;
  const Options *options;
  std::array<uint32_t, 3> grid;
  std::array<uint32_t, 3> block;
  uint32_t threads = 0; // work-items per workgroup
  uint32_t waves = 0;   // waves per workgroup
  uint32_t lds_bytes = 0;
  uint32_t scratch_bytes = 0; // per lane
  int32_t entry = 0;          // index of the first instruction
  uint64_t instruction_budget = 0;
  bool strict = false;
  GlobalSync *sync = nullptr;       // for a cooperative launch
  std::vector<uint32_t> user_sgprs; // values of s0 and on when a wave starts
  CodeMap code;
  LaunchChecks checks;
  LaunchFidelity *fidelity = nullptr; // nullable
  std::atomic<bool> stop = false;
};

class Workgroup {
public:
  explicit Workgroup(LaunchState &launch);
  ~Workgroup();

  void start(std::array<uint32_t, 3> id, uint32_t number);
  // Sleeping: a wave has used s_sleep, or waits for waves of other workgroups.
  enum class Progress : uint8_t { running, sleeping, ended };
  /// Runs each wave for at most `slice` instructions between barriers.
  Progress run(uint64_t slice);

  /// For callers that schedule single instructions themselves instead of calling `run`.
  Wave &wave(uint32_t id);
  /// Reports the fault of a wave whose instruction returned Step::stop; ends the launch.
  void report_fault(const Wave &wave);
  void report_exhausted(const Wave &wave);

  /// Sums over all workgroups of this object.
  Counters counters;

private:
  enum class WaveState : uint8_t { ready, at_barrier, at_global_barrier, ended };
  struct Slot;

  void start_wave(uint32_t id);
  enum class Loop : uint8_t { fast, strict, observed };
  template <Loop loop> Step run_wave(Slot &slot, uint64_t limit);
  Step run_observed(Slot &slot, const Op &op, uint64_t number);
  /// Runs one wave for at most `limit` instructions; true if it went to sleep.
  bool take_turn(Slot &slot, uint64_t limit);
  /// Gives turns to ready waves until each has had `slice` instructions or none is left; true if one went to
  /// sleep.
  bool take_turns(uint64_t slice);
  void report_stop(const Wave &wave, const Op *at, ReportKind kind, std::string message);
  void end_wave(Slot &slot);
  void enter_meeting();
  bool release_barrier();
  /// True if a wave waits for waves of other workgroups.
  bool leave_global_barriers();
  void report_deadlock();

  LaunchState &launch;
  WorkgroupView view;
  WorkgroupChecks checks;
  std::unique_ptr<uint8_t[]> lds;
  std::vector<InexactSet> inexact_lds; // by byte, if the launch has a fidelity note
  std::vector<std::unique_ptr<Slot>> slots;
  uint64_t random = 1;      // for the schedule
  uint64_t stuck_since = 0; // a moment of the launch's GlobalSync
};

} // namespace sluice::emulator
