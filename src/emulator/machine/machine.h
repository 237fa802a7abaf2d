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

#include "emulator/check/fidelity_note.h"
#include "emulator/check/inexact_memory.h"
#include "emulator/check/report.h"
#include "emulator/check/suppressions.h"
#include "emulator/isa/mfma_shapes.h"
#include "emulator/machine/trace.h"
#include "emulator/memory/memory.h"
#include "emulator/memory/memory_watch.h"
#include "emulator/memory/pool_table.h"

namespace sluice::emulator {

//===--- Options ----------------------------------------------------------------------------------------===//

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

struct Options : CheckOptions {
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
  uint8_t reachable_devices = 0xff; // one bit per device whose memory the launching device may access
  bool preload_kernargs = true; // false: like firmware that enters kernels at their compatibility prologue
  std::atomic<uint64_t> *workgroups_ended = nullptr; // nullable: counts each workgroup as it ends
  bool list_memory_uses = false;                     // in LaunchResult::uses
  Tracer *tracer = nullptr;                          // nullable: is called for each instruction
  std::shared_ptr<const MemoryWatch> watch;          // nullable: counts accesses of memory
  uint64_t clock_start = 0;                          // clk that s_memtime counts from
  std::shared_ptr<const Suppressions> suppressions;  // nullable
  std::shared_ptr<const PoolTable> pools;            // nullable: blocks within blocks of the memory
  // Nullable: the result has a fidelity note. Launches that share it follow values from one to the next.
  std::shared_ptr<InexactMemory> fidelity;
  bool cooperative = false; // all workgroups run side by side and may use global wave sync
};

//===--- Results ----------------------------------------------------------------------------------------===//

struct Counters {
  uint64_t wave_instructions = 0;
  uint64_t waves = 0;
  uint64_t workgroups = 0;
  uint64_t mfma_instructions = 0;
  std::array<uint64_t, mfma_instruction_count> mfma_by_kind{}; // in the order of mfma_instructions()
  uint64_t lds_bank_conflicts = 0;                             // extra LDS cycles, counted per conflict group
  uint64_t buffer_lanes_out_of_range = 0; // of buffer accesses, wholly or partly; a scalar one counts 1
  uint64_t launches = 0;
  uint64_t clock_end = 0; // the latest clk that a wave's clock has reached; a sum's is the later one

  Counters &operator+=(const Counters &other);
};

struct LaunchResult {
  std::string kernel;
  bool checked = true;          // false: the options' filters have switched the checks off
  std::vector<Report> reports;  // empty: the kernel ran to its end without a finding
  uint64_t reports_dropped = 0; // findings at places beyond max_reports
  Counters counters;
  std::optional<FidelityNote> fidelity; // if Options ask for it
  std::vector<MemoryUse> uses;          // dwords that were touched, if Options ask for the list

  /// True if there are no reports, not even a warning.
  bool ok() const { return reports.empty(); }
  /// The first error; null without an error.
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
