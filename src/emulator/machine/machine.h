//===- machine.h - the emulated gfx942 machine ----------------------------------------------------------===//
//
// Load a code object into a Program once, then launch its kernels as often as needed. A launch runs to its
// end before it returns: the HIP surface above implements streams, events and sticky errors. A kernel's
// mistakes come back as reports; the machine neither prints nor aborts.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "emulator/check/memory_watch.h"
#include "emulator/exec/mfma.h"
#include "emulator/machine/memory.h"
#include "emulator/machine/trace.h"

namespace sluice::emulator {

//===--- Options ----------------------------------------------------------------------------------------===//

/// When the result of a load or a copy into LDS arrives. All three are legal for the hardware: `late` is the
/// last moment before a wait forces it, `early` is at once, `random` decides per instruction.
enum class CompletionOrder : uint8_t { late, early, random };

/// Which wave of a workgroup runs next. All are legal for the hardware: a program must not depend on it.
enum class WaveSchedule : uint8_t {
  greedy,      // each wave runs until it has to wait
  round_robin, // one instruction per wave, in turn
  random,      // a few instructions of a wave drawn with the seed
};
/// The order in which workgroups start.
enum class WorkgroupSchedule : uint8_t {
  ascending,
  descending,
  by_xcd, // all of one XCD (number modulo 8), then all of the next
  random, // drawn with the seed
};

/// How certain it is that missing wait states give wrong results.
enum class HazardLevel : uint8_t {
  required, // AMD's CDNA3 ISA manual asks for them
  compiler, // only LLVM's hazard recogniser asks for them
  by_count, // too few by count, but a taken branch or a barrier was in between, which takes some time as well
  waived,   // only LLVM asks for them, and the manual says 0 there, or AMD's own assembly does without
};
inline constexpr size_t hazard_levels = 4;
std::string_view hazard_level_name(HazardLevel level);

/// Checks cost nothing only if all are off. All are on except the last two, which report behaviour that the
/// ISA defines and many kernels rely on.
struct Checks {
  bool pending = true;              // registers touched before the wait for the load that writes them
  bool lds_races = true;            // conflicting LDS accesses not separated by waits and a barrier
  bool lds_equal_stores = true;     // ... that are stores of the same value
  bool lds_write_after_read = true; // ... a store after a barrier and a read that was issued before it
  bool lds_bounds = true;           // LDS accesses beyond the workgroup's allocation
  bool global_bounds = true;        // memory outside every block, freed, or read-only
  bool uninitialised = true;        // LDS bytes and registers read before written
  bool registers = true;            // registers beyond what the descriptor declares
  bool exec_at_mfma = true;         // MFMA ignores EXEC: a partial EXEC there is a mistake
  bool global_races = true;         // conflicting accesses of memory by workgroups that no atomic orders
  bool stale_caches = true;         // ... that an atomic orders, but a cache may still hold old data
  bool stream_races = true;         // work of several streams on the same memory, unordered (HIP surface)
  bool hazards = true;              // missing wait states that the manual requires
  bool hazards_compiler = true;     // ... of HazardLevel::compiler
  bool hazards_by_count = true;     // ... of HazardLevel::by_count
  bool hazards_waived = false;      // ... of HazardLevel::waived
  bool contents = false;            // contents of arrays in memory that a library's call reads (HIP surface)
  bool buffer_range = false; // buffer accesses beyond the resource's range, which read 0 and store nothing

  /// All that are on by default.
  static constexpr Checks all() { return {}; }
  static constexpr Checks none() {
    return {false, false, false, false, false, false, false, false, false,
            false, false, false, false, false, false, false, false, false};
  }
  /// Checks whose reports are warnings by default: as far as is known, their findings give right results on
  /// the hardware.
  static constexpr Checks warned_of() {
    Checks checks = none();
    checks.lds_equal_stores = checks.lds_write_after_read = true;
    checks.hazards_compiler = checks.hazards_by_count = checks.hazards_waived = true;
    return checks;
  }
  friend bool operator==(const Checks &, const Checks &) = default;
};

/// The names of the switches, as users spell them, and a check by its name (null if there is none).
std::span<const std::string_view> check_names();
bool *check_by_name(Checks &checks, std::string_view name);

// Both throw std::invalid_argument, with the reason.
/// "all" (all that are on by default), "none", or names separated by commas.
Checks parse_checks(std::string_view text);
/// Which checks only warn: "default", "all" that can, "none", or names separated by commas.
Checks parse_warnings(std::string_view text);
/// False for accesses that memory refuses, which are always errors.
bool may_warn(std::string_view check);

struct Options {
  Checks checks;
  Checks warnings = Checks::warned_of(); // whose reports do not fail the launch; see report_fails
  CompletionOrder completion = CompletionOrder::late;
  WaveSchedule wave_schedule = WaveSchedule::greedy;
  WorkgroupSchedule workgroup_schedule = WorkgroupSchedule::ascending;
  uint64_t seed = 1; // for everything that is `random`
  // Results of v_exp, v_log, v_rcp, v_rsq, v_sqrt, v_sin and v_cos that are neither 0 nor infinite stay or
  // move by one unit in the last place, drawn by seed, instruction, lane and result: the hardware promises no
  // more accuracy.
  bool perturb_transcendentals = false;
  bool scramble_nans = false;       // NaNs that vector instructions make get payloads drawn the same way
  uint32_t threads = 0;             // 0: as many as the host has processors
  uint64_t instruction_budget = 0;  // instructions after which a wave is stopped; 0: never
  uint32_t max_reports = 32;        // places kept per launch, of each kind and rule; others are only counted
  bool stop_at_report = false;      // the first error ends the launch
  bool count_bank_conflicts = true; // with any check on; without checks they are never counted
  uint8_t reachable_devices = 0xff; // one bit per device whose memory the launching device may access
  bool preload_kernargs = true; // false: like firmware that enters kernels at their compatibility prologue
  std::atomic<uint64_t> *workgroups_ended = nullptr; // nullable: counts each workgroup as it ends
  bool list_memory_uses = false;                     // in LaunchResult::uses
  Tracer *tracer = nullptr;                          // nullable: is called for each instruction
  std::shared_ptr<const MemoryWatch> watch;          // nullable: counts accesses of memory
  bool cooperative = false; // all workgroups run side by side and may use global wave sync
};

//===--- Results ----------------------------------------------------------------------------------------===//

enum class ReportKind : uint8_t {
  launch_refused,        // nothing ran: the kernel needs a feature that the machine lacks (HIP launches only)
  unknown_instruction,   // no such instruction on this machine: the wave stops
  invalid_pc,            // jump to an address that holds no instruction: the wave stops
  budget_exhausted,      // the wave ran longer than the instruction budget
  trap,                  // s_trap
  barrier_deadlock,      // all waves wait at barriers that no other wave can reach
  pending_register,      // missing wait: a register whose load is in flight
  lds_race,              // two unordered LDS accesses, one a write
  lds_equal_stores,      // two unordered stores of the same value
  lds_write_after_read,  // ... a store after a barrier, and a read issued before it that was not waited for
  lds_out_of_bounds,     // beyond the workgroup's allocation
  lds_uninitialised,     // LDS read before any write
  lds_copy_at_end,       // the wave ends while a copy into LDS is in flight
  global_out_of_bounds,  // address in no block
  global_freed,          // address in a freed block
  no_peer_access,        // memory of another device that was not opened to this one
  scratch_out_of_bounds, // beyond the lane's scratch
  buffer_out_of_range,   // beyond the resource's records
  global_race,           // two workgroups access memory without an order, one writes
  stale_cache,           // ordered, but a cache was not written back or not invalidated
  memory_uninitialised,  // an atomic on memory that was never written
  global_read_only,      // store to kernel arguments, constants or code
  misaligned,            // address not aligned as the instruction requires
  register_out_of_range, // register beyond the descriptor's
  register_uninitialised, // an address, branch or matrix operand that was never written
  exec_at_mfma,           // EXEC not full at an MFMA
  stream_race,            // work of two streams uses memory without an order, one writes
  freed_in_use,           // ... one frees it
  bad_contents,           // a library's call would read numbers that break its rules
  hazard,                 // too few wait states between two instructions
};
std::string_view report_kind_name(ReportKind kind);
/// Whether a report fails its launch. Faults that end a wave and accesses that memory refuses always do.
/// Findings of other checks do unless the check is among the warnings.
bool report_fails(ReportKind kind, HazardLevel level, const Checks &warnings);

struct Report {
  /// The earlier access, where two conflict (races, pending registers, hazards).
  struct Other {
    uint64_t pc = 0;
    std::string disassembly;
    uint32_t wave = 0;
    std::string source;
  };

  ReportKind kind{};
  HazardLevel level = HazardLevel::required; // for a hazard
  uint8_t rule = 0;                          // for a hazard: a number, different for each rule
  bool fails = true;                         // false: a warning, the launch may still succeed
  std::string kernel;
  std::string message;     // one sentence
  uint64_t pc = 0;         // address in the code object, as a disassembler shows it
  std::string disassembly; // of the instruction at pc
  std::string source;      // "file:line" and the lines it was inlined at; empty without debug information
  std::array<uint32_t, 3> workgroup{};
  uint32_t wave = 0;
  int32_t lane = -1;    // -1: the whole wave
  uint64_t address = 0; // device address, LDS byte, or register number, depending on the kind
  std::optional<Other> other;
  uint64_t count = 1; // times it happened in the launch, at this pair of instructions
};
/// The kind as shown in text: "lds_race", "hazard (required)", "warning: lds_equal_stores".
std::string kind_text(const Report &report);
/// "kernel+pc: kind: message" with the place and the other access, over several lines.
std::string to_text(const Report &report);
/// A JSON array.
std::string to_json(std::span<const Report> reports);

struct Counters {
  uint64_t wave_instructions = 0;
  uint64_t waves = 0;
  uint64_t workgroups = 0;
  uint64_t mfma_instructions = 0;
  std::array<uint64_t, mfma_instruction_count> mfma_by_kind{}; // in the order of mfma_instructions()
  uint64_t lds_bank_conflicts = 0;                             // extra LDS cycles, counted per conflict group
  uint64_t buffer_lanes_out_of_range = 0; // of buffer accesses, wholly or partly; a scalar one counts 1
  uint64_t launches = 0;

  Counters &operator+=(const Counters &other);
};

/// Bytes of one block that a piece of work has touched.
struct MemoryUse {
  enum class Kind : uint8_t { read, write, atomic, release };
  uint64_t start;
  uint64_t end;
  uint64_t block; // its serial number
  Kind kind;
};

struct LaunchResult {
  std::vector<Report> reports;  // empty: the kernel ran to its end without a finding
  uint64_t reports_dropped = 0; // findings at places beyond max_reports
  Counters counters;
  std::vector<MemoryUse> uses; // dwords that were touched, if Options ask for the list

  /// True if there are no reports, not even a warning.
  bool ok() const { return reports.empty(); }
  /// The first error; null if there is none.
  const Report *failure() const;
};

//===--- Programs ---------------------------------------------------------------------------------------===//

/// What a kernel's descriptor and metadata say.
struct KernelInfo {
  std::string name;
  uint64_t entry = 0;      // address in the code object
  uint64_t descriptor = 0; // address in the code object
  uint32_t kernarg_bytes = 0;
  uint32_t lds_bytes = 0;     // static
  uint32_t scratch_bytes = 0; // per lane
  uint32_t vgprs = 0;         // granted per lane, ArchVGPRs and AccVGPRs together
  uint32_t accum_offset = 0;  // AccVGPR a0 is register number accum_offset of the unified file
  /// ArchVGPRs that the kernel's code may name: those before a0. Code without AccVGPRs may name all it was
  /// granted, and assemblers leave any accum_offset in its descriptor.
  uint32_t arch_vgprs = 0;
  uint32_t acc_vgprs = 0;
  uint32_t sgprs = 0; // granted per wave
  uint32_t max_workgroup_threads = 0;
};

struct ProgramImpl;

/// A code object, loaded and decoded. Its image is in host memory and stays there for the Program's life;
/// kernels that write its variables change them for all later launches. It is safe to launch it from several
/// threads at once.
class Program {
public:
  /// Throws std::runtime_error, with the reason, for anything except a gfx942 code object of version 4 to 6.
  explicit Program(std::span<const std::byte> elf);
  ~Program();
  Program(const Program &) = delete;
  Program &operator=(const Program &) = delete;

  const std::vector<KernelInfo> &kernels() const;
  const KernelInfo *kernel(std::string_view name) const;

  /// Device memory of a variable of the code object; empty if there is no variable of that name.
  std::span<std::byte> variable(std::string_view name) const;

  /// The memory that holds the loaded segments: attach it to a Memory to let hosts copy to variables.
  std::span<std::byte> image() const;

  /// "address: text" per line, from a kernel's entry to the end of its symbol; empty if there is no such
  /// kernel.
  std::string disassemble(std::string_view kernel) const;

  const ProgramImpl &impl() const { return *implementation; }

private:
  std::unique_ptr<ProgramImpl> implementation;
};

/// Wait states that are missing on some path through the code, whether a wave takes it or not; those of
/// HazardLevel::waived only if `with_waived` is set. A report's kernel is the one whose entry precedes it;
/// wave and lane mean nothing.
std::vector<Report> static_reports(const Program &program, bool with_waived = false);

/// The wait states that an s_nop gives, and how many of them the paths through it need.
struct NopStates {
  uint64_t pc; // address in the code object
  uint32_t given;
  uint32_t needed; // 0: it can be removed
};
/// All s_nop instructions, by address, that a kernel reaches without jumps through registers, each checked
/// against the rules of all levels except HazardLevel::waived. All of them can be cut down to what they need
/// at once. Hazards that the code already has are ignored.
std::vector<NopStates> nop_states(const Program &program);

/// Runs a kernel. `grid` counts workgroups, `block` work-items; `kernarg` is copied and read-only to the
/// kernel. Throws std::invalid_argument for a launch that no driver would accept (unknown kernel, an extent
/// of 0, more than 1024 work-items, more LDS than 64 KiB, fewer or more kernarg bytes than the kernel
/// declares) and for a kernel that needs features the machine does not have (waves of 32 lanes, trap
/// handlers).
LaunchResult launch(const Program &program, std::string_view kernel, std::array<uint32_t, 3> grid,
                    std::array<uint32_t, 3> block, uint32_t dynamic_lds_bytes,
                    std::span<const std::byte> kernarg, const Memory &memory, const Options &options = {});

} // namespace sluice::emulator
