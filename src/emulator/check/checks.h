//===- checks.h - which checks a launch makes -----------------------------------------------------------===//
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <span>
#include <string_view>

namespace sluice::emulator {

/// Checks cost nothing only if all are off. All are on except `barrier_places` and the last six: these
/// report behaviour that the ISA defines and kernels rely on, or are about whole programs.
struct Checks {
  bool pending = true;              // registers touched before the wait for the load that writes them
  bool lds_races = true;            // conflicting LDS accesses not separated by waits and a barrier
  bool lds_equal_stores = true;     // ... that are stores of the same value
  bool lds_write_after_read = true; // ... a store after a barrier and a read that was issued before it
  bool lane_stores = true;          // different values of one instruction's lanes for one place
  bool barriers = true;             // waves that end while others wait at a barrier
  bool divergent_barriers = true;   // lanes that are elsewhere when their wave is at a barrier
  bool barrier_places = false;      // waves that meet at different barriers
  bool lds_bounds = true;           // LDS accesses beyond the workgroup's allocation
  bool global_bounds = true;        // memory outside every block, freed, or read-only
  bool uninitialised = true;        // LDS bytes and registers read before written
  bool registers = true;            // registers beyond what the descriptor declares
  bool exec_at_mfma = true;         // MFMA ignores EXEC: a partial EXEC there is a mistake
  bool global_races = true;         // conflicting accesses of memory by waves that nothing orders
  bool global_equal_stores = true;  // ... that are stores of the same value
  bool stale_caches = true;         // ... that an atomic orders, but a cache may still hold old data
  bool stream_races = true;         // work of several streams on the same memory, unordered (HIP surface)
  bool hazards = true;              // missing wait states that the manual requires
  bool hazards_compiler = true;     // ... of HazardLevel::compiler
  bool hazards_by_count = true;     // ... of HazardLevel::by_count
  bool hazards_waived = false;      // ... of HazardLevel::waived
  bool contents = false;            // contents of arrays in memory that a library's call reads (HIP surface)
  bool buffer_range = false;   // buffer accesses beyond the resource's range, which read 0 and store nothing
  bool leaks = false;          // device memory that is never freed (HIP surface, as the next two)
  bool ignored_errors = false; // errors of HIP's functions that the program never asked for
  bool unwritten_copies = false; // copies to the host of memory never written; only with `uninitialised`

  /// All that are on by default.
  static constexpr Checks all() { return {}; }
  static constexpr Checks none() { return std::bit_cast<Checks>(std::array<bool, sizeof(Checks)>{}); }
  /// Checks whose reports are warnings or notes by default: as far as is known, their findings give right
  /// results on the hardware.
  static constexpr Checks warned_of() {
    Checks checks = none();
    checks.lds_equal_stores = checks.lds_write_after_read = true;
    checks.global_equal_stores = checks.lane_stores = true;
    checks.divergent_barriers = checks.barrier_places = true;
    checks.hazards_compiler = checks.hazards_by_count = checks.hazards_waived = true;
    checks.leaks = checks.ignored_errors = checks.unwritten_copies = true;
    return checks;
  }
  /// Checks whose findings may be harmless on a GPU, or only sometimes harmful, and after which a launch can
  /// run to its end: races and values never written.
  static constexpr Checks findings() {
    Checks checks = none();
    checks.lds_races = checks.global_races = checks.stale_caches = checks.stream_races = true;
    checks.uninitialised = checks.barriers = true;
    return checks;
  }
  friend bool operator==(const Checks &, const Checks &) = default;
};

/// The names of the switches, as users spell them, and a check by its name (null if the name is unknown).
std::span<const std::string_view> check_names();
bool *check_by_name(Checks &checks, std::string_view name);

// Both throw std::invalid_argument, with the reason.
/// "all" (all that are on by default), "none", or names separated by commas.
Checks parse_checks(std::string_view text);
/// Which checks only warn: "default", "all" that can, "none", or names separated by commas.
Checks parse_warnings(std::string_view text);
/// Whose errors do not fail the launch: "none", "findings", "all" that can, or names separated by commas.
Checks parse_tolerated(std::string_view text);
/// False for accesses that memory refuses, which are always errors.
bool may_warn(std::string_view check);

/// When the result of a load or a copy into LDS arrives. All three are legal for the hardware: `late` is the
/// last moment before a wait forces it, `early` is at once, `random` decides per instruction.
enum class CompletionOrder : uint8_t { late, early, random };

/// What the checks need to know of a launch's options.
struct CheckOptions {
  Checks checks;
  Checks warnings = Checks::warned_of(); // whose reports are warnings, and do not fail the launch
  Checks tolerated = Checks::none();     // whose errors do not fail the launch either; see consequence_of
  CompletionOrder completion = CompletionOrder::late;
  bool count_bank_conflicts = true; // with any check on; without checks they are never counted
};

} // namespace sluice::emulator
