//===- report.h - the mistakes that the machine finds in a kernel ---------------------------------------===//
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "emulator/check/checks.h"

namespace sluice::emulator {

/// How certain it is that missing wait states give wrong results.
enum class HazardLevel : uint8_t {
  required, // AMD's CDNA3 ISA manual asks for them
  compiler, // only LLVM's hazard recogniser asks for them
  by_count, // too few by count, but a taken branch or a barrier was in between, which takes some time as well
  waived,   // only LLVM asks for them, and the manual says 0 there, or AMD's own assembly does without
};
inline constexpr size_t hazard_levels = 4;
std::string_view hazard_level_name(HazardLevel level);
std::optional<HazardLevel> hazard_level_by_name(std::string_view name);

enum class ReportKind : uint8_t {
  launch_refused,        // nothing ran: the kernel needs a feature that the machine lacks (HIP launches only)
  not_emulated,          // the kernel uses a service of the host that the machine lacks: the launch stops
  unknown_instruction,   // no such instruction on this machine: the wave stops
  invalid_pc,            // jump to an address that holds no instruction: the wave stops
  budget_exhausted,      // the wave ran longer than the instruction budget
  trap,                  // s_trap
  barrier_deadlock,      // all waves wait at barriers that no other wave can reach
  pending_register,      // missing wait: a register whose load is in flight
  lds_race,              // two unordered LDS accesses, one a write
  lds_equal_stores,      // two unordered stores of the same value
  lds_write_after_read,  // ... a store after a barrier, and a read issued before it that was not waited for
  lanes_store_different, // two lanes of one instruction store different values to one place
  barrier_mismatch,      // waves wait at a barrier that another wave of the workgroup has ended without
  barrier_divergent,     // lanes of a wave do not reach a barrier with it
  barrier_places,        // waves meet at different barriers
  lds_out_of_bounds,     // beyond the workgroup's allocation
  lds_uninitialised,     // LDS read before any write
  lds_copy_at_end,       // the wave ends while a copy into LDS is in flight
  global_out_of_bounds,  // address in no block
  global_freed,          // address in a freed block
  no_peer_access,        // memory of another device that was not opened to this one
  scratch_out_of_bounds, // beyond the lane's scratch
  buffer_out_of_range,   // beyond the resource's records
  global_race,           // two waves access memory without an order, one writes
  global_equal_stores,   // two waves store the same value without an order
  stale_cache,           // ordered, but a cache was not written back or not invalidated
  memory_uninitialised,  // an atomic on memory that was never written
  global_read_only,      // store to kernel arguments, constants or code
  misaligned,            // address not aligned as the instruction requires
  register_out_of_range, // register beyond the descriptor's
  register_uninitialised, // an address, branch or matrix operand that was never written
  exec_at_mfma,           // EXEC not full at an MFMA
  stream_race,            // work of two streams uses memory without an order, one writes
  freed_in_use,           // ... one frees it
  memory_leak,            // device memory that is still allocated when the program ends
  error_ignored,          // an error of a HIP function that the program never asked for
  copy_uninitialised,     // a copy to the host of memory that was never written
  bad_contents,           // a library's call would read numbers that break its rules
  hazard,                 // too few wait states between two instructions
};
std::string_view report_kind_name(ReportKind kind);
/// Whether a report of this kind that fails nothing is a note, not a warning.
bool is_note(ReportKind kind);
std::optional<ReportKind> report_kind_by_name(std::string_view name);
std::span<const std::string_view> report_kind_names();
/// Whether a report of this kind says that the launch has not run to its end.
bool ends_launch(ReportKind kind);
/// Whether a report is an error, not a warning. Faults that end a wave and accesses that memory refuses
/// always are. Findings of other checks are unless the check is among the warnings.
bool report_fails(ReportKind kind, HazardLevel level, const Checks &warnings);

/// What a report means for its launch. Neither of the two: a warning.
struct Consequence {
  bool fails = true;    // an error that fails the launch
  bool goes_on = false; // an error, but the launch keeps its results
};
Consequence consequence_of(ReportKind kind, HazardLevel level, const CheckOptions &options);

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
  bool fails = true;                         // the launch fails
  bool goes_on = false;                      // an error although the launch may succeed
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
  /// The calls of the host program, "function, file:line", empty if unknown: the launch, and the allocation
  /// of the memory at `address`.
  std::string launched_by;
  std::string allocated_by;
  uint32_t suppressed = 0; // line of the rule that suppresses it; 0: none

  bool is_error() const { return fails || goes_on; }
  void set(const Consequence &consequence) {
    fails = consequence.fails;
    goes_on = consequence.goes_on;
  }
};
/// "error", "warning" or "note".
std::string_view severity_name(const Report &report);
/// The kind as shown in text: "lds_race", "hazard (required)", "warning: lds_equal_stores".
std::string kind_text(const Report &report);
/// "kernel+pc: kind: message" with the place and the other access, over several lines.
std::string to_text(const Report &report);
/// Appends a JSON string literal.
void append_json_string(std::string &out, std::string_view text);
/// A JSON array.
std::string to_json(std::span<const Report> reports);

} // namespace sluice::emulator
