//===- faulty_hip.h - the emulator's HIP table with a failure where a test wants one --------------------===//
//
// Stands between the library and the emulator: counts the calls of the required entry points and lets one of
// them fail. A call that fails is not made, but one that releases something is: a failure to release in HIP
// says nothing about what was released. One table per process, as HIP functions have no user pointer.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "emulator/emulator.h"
#include "runtime/hip_table.h"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace sluice::test {

class FaultyHip {
public:
  static constexpr int error = 999; // hipErrorUnknown

  /// Counts from 0 again; the call of number `failing` fails.
  static void start(std::optional<size_t> failing) {
    calls = 0;
    fails_at = failing;
    failed.clear();
  }
  static size_t call_count() { return calls; }
  /// The entry point that failed since the start, or nothing.
  static const std::string &failed_call() { return failed; }

  /// A sluice_hip_resolver.
  static void *resolve(const char *name, void *) {
#define SLUICE_ENTRY(entry, parameters)                                                                      \
  if (std::string_view(name) == #entry) return Entry<int parameters, entry##_name>::bind();
    SLUICE_HIP_REQUIRED(SLUICE_ENTRY)
#undef SLUICE_ENTRY
    return sluice_emulator_symbol(name);
  }

private:
#define SLUICE_ENTRY(entry, parameters) static constexpr char entry##_name[] = #entry;
  SLUICE_HIP_REQUIRED(SLUICE_ENTRY)
#undef SLUICE_ENTRY

  template <typename Function, const char *name> struct Entry;
  template <typename... Parameters, const char *name> struct Entry<int(Parameters...), name> {
    static inline int (*emulated)(Parameters...);
    static void *bind() {
      emulated = reinterpret_cast<int (*)(Parameters...)>(sluice_emulator_symbol(name));
      return reinterpret_cast<void *>(&call);
    }
    static int call(Parameters... parameters) {
      if (calls++ != fails_at) return emulated(parameters...);
      failed = name;
      if (failed == "hipModuleUnload") emulated(parameters...);
      return error;
    }
  };

  static inline size_t calls = 0;
  static inline std::optional<size_t> fails_at;
  static inline std::string failed;
};

} // namespace sluice::test
