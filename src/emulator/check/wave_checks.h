//===- wave_checks.h - the strict side of a wave --------------------------------------------------------===//
//
// Exists only when a check is on or loads are to complete late. The run loop calls it before and after each
// instruction. Memory instructions give it what they have loaded, and it decides when that arrives.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <array>
#include <bit>
#include <bitset>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "emulator/check/async_queue.h"
#include "emulator/check/global_shadow.h"
#include "emulator/check/hazards.h"
#include "emulator/check/lds_shadow.h"
#include "emulator/check/quiet_runs.h"
#include "emulator/check/report_sink.h"
#include "emulator/check/unused_reads.h"
#include "emulator/isa/op_info.h"
#include "emulator/isa/wave.h"
#include "emulator/memory/memory_watch.h"

namespace sluice::emulator {

class WaveFidelity;

inline constexpr uint32_t all_bits = ~0u; // of a scalar register

inline uint64_t lane_bit(uint32_t lane) {
  return uint64_t(1) << lane;
}
inline uint32_t low_lane(uint64_t lanes) {
  return uint32_t(std::countr_zero(lanes));
}

/// One bit per operand number.
using OperandSet = std::bitset<1024>;

/// State that the waves of a launch share.
struct LaunchChecks {
  const CheckOptions *options;
  ReportSink *sink;
  const OpInfos *ops;
  const QuietRuns *quiet_runs;
  std::array<bool, hazard_levels> hazards; // the levels to look for
  const BlockTable *memory;
  uint32_t vgpr_limit; // how many registers of each file the kernel may name
  uint32_t agpr_limit;
  uint32_t sgpr_limit;
  GlobalShadow *shadow;     // null: accesses of different waves are not compared
  ReleasedAtomics *atomics; // set together with `shadow`, unless nothing in the program acquires
  const MemoryWatch *watch; // nullable
  UnusedReads *unused_reads;
};

/// What the waves of a workgroup share.
struct WorkgroupChecks {
  explicit WorkgroupChecks(UnusedReads *unused) : reads(unused) {}

  LdsShadow lds;
  FollowedReads reads;
  GlobalShadow::Pages pages;
};

class WaveChecks {
public:
  WaveChecks(const LaunchChecks &launch, WorkgroupChecks &workgroup);

  /// Tells it what memory instructions access. Nullable.
  void follow_with(WaveFidelity *fidelity) { followed = fidelity; }

  /// Resets to the state of a starting wave. `defined_sgprs`: how many SGPRs the launch has written.
  void start(const Wave &wave, uint32_t defined_sgprs, uint64_t random_seed);

  /// How many instructions from this one on, at most `left`, need neither `before` nor `after`: nothing that
  /// they do could be reported, and what they define has been entered.
  uint64_t quiet(const Wave &w, uint32_t op, uint64_t left);
  void before(Wave &w, const Op &op) {
    const OpInfo &info = launch.ops->infos[op.index];
    if (checks.registers && (info.vgprs_end > launch.vgpr_limit || info.agprs_end > launch.agpr_limit ||
                             info.sgprs_end > launch.sgpr_limit))
      report_registers(w, op, info);
    if (pending_registers != 0) check_pending(w, op, info);
    if (w.mode.gpr_index && info.kind == OpKind::valu) check_indexed(w, op);
    if (tracks_defined) {
      if (info.kind == OpKind::valu)
        track_valu(w, op, info);
      else if (info.kind == OpKind::scalar)
        track_scalar(w, op, info);
      else
        track_others(w, op, info);
    }
    if (checks.exec_at_mfma && info.kind == OpKind::mfma && w.exec() != all_lanes) report_exec(w, op);
    if (looks_for_hazards)
      if (const std::optional<HazardFound> found = hazards.step(op, info, *launch.ops))
        report_hazard(w, op, *found);
  }
  void after(const Op &op) {
    const OpInfo &info = launch.ops->infos[op.index];
    if (loaded.any) take_undefined(op, info);
    if (!tracks_defined) return;
    for (uint32_t i = info.writes_begin; i < info.writes_end; ++i)
      note_undefined(launch.ops->ranges[i]);
  }

  /// Checks a scalar register that M0 chose, before its use.
  void check_indexed_scalar(Wave &w, const Op &op, uint64_t number, uint32_t dwords, bool write);

  /// s_waitcnt: completes operations until no more than the counts are in flight.
  void wait(Wave &w, uint32_t vector_count, uint32_t lgkm_count);
  /// The workgroup passes a barrier: operations in flight belong to the new epoch, too.
  void carry_into_epoch(Wave &w);
  /// The wave ends: what is in flight completes.
  void finish(Wave &w);

  //===--- For memory instructions --------------------------------------------------------------------===//

  /// A new operation of `op`. Fill it in (registers, data, addresses), then pass it to `issue`.
  AsyncOperation &new_operation(Wave &w, const Op &op, AsyncKind kind);
  void issue(Wave &w, AsyncOperation &operation);

  /// The lanes of `exec` whose access is allowed; reports the others.
  /// `stored`: what a plain store will write.
  uint64_t check_global(Wave &w, const Op &op, const uint64_t *addresses, uint64_t exec, uint32_t bytes,
                        bool write, StoredRows stored = {});
  bool check_scalar(Wave &w, const Op &op, uint64_t address, uint32_t bytes, bool write);
  /// For loads whose registers are not the dwords of memory: one undefined dword makes all registers
  /// undefined.
  void spread_undefined(uint32_t rows);
  /// Enters buffer_wbl2 and buffer_inv with a scope that reaches other compute units.
  void write_back(Wave &w, const Op &op);
  void invalidate(const Op &op);
  /// An instruction that lgkmcnt counts but that accesses no memory.
  void count_lds_operation(Wave &w, const Op &op);
  /// The wave arrives at a barrier of all workgroups, and goes on after it.
  void reach_global_barrier(uint32_t resource);
  void pass_global_barrier(uint32_t resource);
  /// Reports an LDS access that begins or ends beyond the workgroup's allocation.
  void report_lds_bounds(Wave &w, const Op &op, uint32_t lane, uint64_t address, uint32_t bytes);
  void report_scratch_bounds(Wave &w, const Op &op, uint32_t lane, uint64_t address, uint32_t bytes);
  /// `lane` -1: a scalar access. `records` is NUM_RECORDS of the resource.
  void report_buffer_range(Wave &w, const Op &op, int32_t lane, uint64_t address, uint32_t records,
                           bool write);
  enum class LdsAccess : uint8_t { read, write, atomic };
  /// Enters accesses of the active lanes, all within bounds, before they change LDS. `first_row`: of what a
  /// read loads.
  void enter_lds(Wave &w, const Op &op, LdsAccess access, const LdsLanes &at, StoredRows stored = {},
                 uint32_t first_row = 0);
  /// Enters an access of a lane's scratch, within bounds.
  void enter_scratch(const Wave &w, const Op &op, bool store, uint32_t lane, uint64_t offset, uint32_t bytes);
  /// For an exchange between lanes: the lane that each lane's value comes from, -1 if from none.
  using LaneSources = std::array<int8_t, wave_lanes>;
  /// `address`: the register that names lanes, or no_operand; it is read in the sending or the receiving
  /// lane.
  void enter_exchange(const Wave &w, const Op &op, uint16_t data, const LaneSources &from, uint16_t address,
                      bool sender);
  void begin_copy(Wave &w, const Op &op, const uint32_t *addresses, uint64_t lanes);
  void report_misaligned(Wave &w, const Op &op, int32_t lane, uint64_t address, uint32_t alignment);

  /// Reports waves and lanes that are elsewhere. `met`: the waves of a workgroup that are at a barrier;
  /// `ended`: the others.
  static void check_meeting(std::span<Wave *const> met, std::span<Wave *const> ended);
  /// The waves of a workgroup have met at a barrier.
  static void meet(std::span<WaveChecks *const> waves);
  /// Registers that a load in flight will still write.
  OperandSet awaited() const;

  uint64_t bank_conflicts = 0;
  bool counts_bank_conflicts() const { return launch.options->count_bank_conflicts; }

private:
  void check_pending(Wave &w, const Op &op, const OpInfo &info);
  bool check_pending(Wave &w, const Op &op, OpKind kind, uint16_t operand, bool is_write);
  void check_indexed(Wave &w, const Op &op);
  void report_index(Wave &w, const Op &op, char file, uint64_t number, uint32_t limit);
  void report_registers(Wave &w, const Op &op, const OpInfo &info);
  void report_exec(Wave &w, const Op &op);
  void check_returned_lanes(Wave &w, const Op &op);
  void report_hazard(Wave &w, const Op &op, const HazardFound &found);
  /// Brings `undefined` up to date for registers whose definedness may have changed.
  void note_undefined(RegisterRange range) {
    for (uint32_t r = 0; r < range.count; ++r) {
      const auto operand = uint16_t(range.first + r);
      undefined.assign(operand, defined_lanes(operand) != all_lanes);
    }
  }
  /// Where an undefined register value comes from, for a result that inherits it.
  struct Origin {
    static constexpr uint32_t nowhere = ~0u;
    uint32_t op = nowhere;      // loaded it, or first read the register
    uint16_t root = no_operand; // the register that was never written; no_operand: it was loaded
  };
  /// Origin::root of a value that the wave read from LDS although its contents are not certain.
  static constexpr uint16_t doubtful_read = no_operand - 1;
  /// ... or that is only followed, see unused_reads.h.
  static constexpr uint16_t followed_read = no_operand - 2;
  struct DoubtfulRead {
    LdsConflict conflict;
    uint32_t lane;
    uint32_t address;
    LdsOther other;
  };
  Origin &origin_of(uint16_t operand) {
    return operand < first_sgpr ? origins[operand] : scalar_origins[operand - first_sgpr];
  }
  Origin inherited(const Op &op, uint16_t source);
  uint16_t root_of(uint16_t operand) const {
    if (operand >= first_constant) return no_operand;
    return (operand < first_sgpr ? origins[operand] : scalar_origins[operand - first_sgpr]).root;
  }
  bool is_followed(uint16_t operand) const { return root_of(operand) == followed_read; }
  bool is_of_lds(uint16_t operand) const { return is_followed(operand) || root_of(operand) == doubtful_read; }
  struct FreshRegisters {
    explicit FreshRegisters(uint32_t sgprs);
    uint32_t sgprs; // that the dispatcher fills
    std::array<uint32_t, 256> defined_bits{};
    RegisterSet undefined;
  };
  void start_defined(const Wave &w, uint32_t defined_sgprs);
  void check_defined(Wave &w, const Op &op, const OpInfo &info);
  void track_valu(Wave &w, const Op &op, const OpInfo &info);
  void track_lanes(Wave &w, const Op &op, const OpInfo &info, uint64_t exec);
  void track_lane_access(Wave &w, const Op &op, const OpInfo &info);
  void track_scalar(Wave &w, const Op &op, const OpInfo &info);
  void track_undefined_scalar(Wave &w, const Op &op, const OpInfo &info);
  void track_others(Wave &w, const Op &op, const OpInfo &info);
  /// Enters a scalar result of which some bits are undefined, because of `source`.
  void set_scalar(Wave &w, const Op &op, uint32_t number, uint32_t undefined, uint16_t source);
  struct DefinedRows {
    uint64_t low; // lanes of the first row of a result
    uint64_t high;
  };
  DefinedRows defined_result(Wave &w, const Op &op, const OpInfo &info);
  uint64_t defined_selection(const Wave &w, const Op &op) const;
  uint64_t defined_source(const Wave &w, const Op &op, uint32_t k, uint32_t row) const;
  uint64_t defined_lanes(uint16_t operand) const;
  uint64_t defined_row(uint16_t operand, uint32_t row) const;
  uint32_t bits_of(uint16_t operand) const {
    return operand >= first_constant ? ~0u : defined_bits[operand - first_sgpr];
  }
  uint64_t mask_bits(uint16_t operand) const {
    return operand >= first_constant ? all_lanes : bits_of(operand) | uint64_t(bits_of(operand + 1)) << 32;
  }
  uint16_t undefined_source(Wave &w, const Op &op, const OpInfo &info, uint64_t lanes) const;
  /// `lanes`: in which it matters; none for a scalar. False if there is nothing to report.
  bool report_undefined(Wave &w, const Op &op, uint16_t operand, std::optional<uint64_t> lanes,
                        const char *role);
  /// A read of LDS whose value is not certain: reported if the value is used.
  void enter_doubtful_read(const Op &op, const DoubtfulRead &read, uint32_t bytes, uint32_t first_row);
  void enter_followed_read(const Op &op, const uint32_t *addresses, uint64_t lanes, uint32_t bytes,
                           uint32_t first_row);
  /// A store has met another wave's read.
  void meet_read(Wave &w, const Op &op, const char *verb, uint32_t lane, uint32_t address, uint32_t bytes,
                 const LdsOther &other);
  uint64_t allowed_lanes(Wave &w, const Op &op, const uint64_t *addresses, uint64_t exec, uint32_t bytes,
                         bool write, StoredRows stored);
  void enter_global(Wave &w, const Op &op, const MemoryBlock &block, const Footprint &footprint,
                    const GlobalAccess &access, StoredRows stored);
  void report_refused(Wave &w, const Op &op, const MemoryBlock *block, int32_t lane, uint64_t address,
                      uint32_t bytes, bool write);
  void compare_lanes(Wave &w, const Op &op, const uint64_t *addresses, uint64_t lanes, uint32_t bytes,
                     StoredRows stored);
  bool is_allowed(Wave &w, const Op &op, uint64_t address, uint32_t bytes, bool write);
  void watch(const Op &op, const uint64_t *addresses, uint64_t lanes, uint32_t bytes, bool write);
  void take_undefined(const Op &op, const OpInfo &info);
  void enter_contents(Wave &w, const Op &op, const MemoryBlock &block, const Footprint &footprint,
                      const GlobalAccess &access);
  void enter_undefined(Wave &w, const Op &op, const MemoryBlock &block, uint32_t lane, uint64_t address,
                       uint32_t bytes, const GlobalAccess &access);
  /// Brings `order` up to date with what the wave has waited for.
  void settle_order();
  void enter_shadow(Wave &w, const Op &op, const Footprint &footprint, const GlobalAccess &access,
                    StoredRows stored);
  void report_conflict(Wave &w, const Op &op, const GlobalConflict &conflict, uint64_t address,
                       const GlobalAccess &access);
  void report(Wave &w, const Op &op, ReportKind kind, int32_t lane, uint64_t address,
              std::optional<LdsOther> other, const std::function<std::string()> &message);
  /// Without a message. `rule` need not say whether it fails.
  Finding finding_of(const Wave &w, const Op &op, Rule rule, int32_t lane, uint64_t address,
                     std::optional<LdsOther> other) const;
  /// `rule` need not say whether it fails.
  void report(Wave &w, const Op &op, Rule rule, int32_t lane, uint64_t address, std::optional<LdsOther> other,
              const std::function<std::string()> &message);
  void check_lane_stores(Wave &w, const Op &op, const uint32_t *addresses, uint64_t lanes, uint32_t bytes,
                         StoredRows stored);
  void report_lds(Wave &w, const Op &op, LdsConflict conflict, const char *verb, uint32_t lane,
                  uint32_t address, const LdsOther &other, const std::string &use = "");
  const AsyncOperation *own_access_in_flight(const uint32_t *addresses, uint64_t lanes, uint32_t bytes,
                                             uint32_t &lane) const;
  void deliver(Wave &w, AsyncOperation &operation);
  void complete(Wave &w, AsyncQueue &queue, size_t position);
  void mark_pending(const AsyncOperation &operation, int32_t change);
  const AsyncOperation *pending_writer(uint16_t operand, bool &in_order, OpKind kind) const;

  const LaunchChecks &launch;
  WaveFidelity *followed = nullptr;
  const Checks checks;
  const bool looks_for_hazards;
  const bool enters_lds; // enters accesses in its shadow
  const bool looks_at_memory;
  const bool tracks_defined;
  LdsShadow &lds;
  FollowedReads &reads;
  AsyncQueue vector_queue; // vmcnt
  AsyncQueue lgkm_queue;   // lgkmcnt
  uint32_t pending_registers = 0;
  std::array<uint8_t, 1024> pending{}; // by operand number: operations in flight that write it
  RegisterSet pending_set;             // those with any
  std::array<uint64_t, vector_registers> defined{};
  std::array<uint32_t, 256> defined_bits{}; // of scalar registers
  RegisterSet undefined;                    // in some lane, or some bit
  FreshRegisters fresh{0};
  std::vector<const MemoryBlock *> last_block; // by instruction: where some wave last accessed
  HazardTracker hazards;
  std::array<Origin, vector_registers> origins{};
  std::array<Origin, 256> scalar_origins{};
  /// Undefined memory that the running instruction has read: the lanes of each row; for a scalar load, the
  /// bits of each register.
  struct {
    bool any = false;
    std::array<uint64_t, 16> rows{};
    Origin origin; // nowhere: the instruction itself
  } loaded;
  std::unordered_map<uint32_t, DoubtfulRead> doubtful_reads; // by instruction, its latest
  std::vector<uint8_t> scratch_defined;                      // by lane and byte
  std::unordered_map<uint64_t, Origin> scratch_origins;      // of dwords with undefined bytes
  /// Where it may acquire, after its read.
  std::vector<LinePart> acquiring;
  WaveOrder order;
  GlobalShadow::Pages &pages;
  /// The last barrier, and EXEC there.
  struct {
    uint32_t op = 0;
    uint64_t exec = all_lanes;
  } at_barrier;
  uint32_t wave = 0;
  uint64_t random = 1;
};

// At the end of a launch: reports loads that met atomics of other waves and were no first reads, and stores
// to LDS that met reads.
void report_loads_at_atomics(const LaunchChecks &launch, std::array<uint32_t, 3> grid, uint32_t waves);
void report_reads_met(const LaunchChecks &launch);

} // namespace sluice::emulator
