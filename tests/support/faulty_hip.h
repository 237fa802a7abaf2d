//===- faulty_hip.h - the emulator's HIP table with failures where a test wants them --------------------===//
//
// It is between the library and the emulator: counts the calls of the library's table and makes one of them
// fail, or that one and all later ones. A failing call is not passed on, unless it releases something: a
// failed release in HIP does not show whether it was released. One table per process, as HIP functions have
// no user pointer.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "runtime/hip_table.h"
#include <sluice/emulator.h>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::test {

struct HipFault {
  std::optional<size_t> at = std::nullopt; // the number of the call that fails
  int error = 999;
  bool sticks = false;       // all later calls fail, too
  bool optional_too = false; // calls of the table's optional entry points count and fail like others
};

class FaultyHip {
public:
  static constexpr int error = 999; // the error of a fault by default: hipErrorUnknown

  /// Restarts counting from 0.
  static void start(const HipFault &wanted) {
    fault = wanted;
    made.clear();
    failed.clear();
  }
  static size_t call_count() { return made.size(); }
  /// The entry points called since the start, in order.
  static const std::vector<const char *> &calls() { return made; }
  /// The entry point that failed first since the start, or an empty string.
  static const std::string &failed_call() { return failed; }
  /// Modules that were loaded and not unloaded, since the process began.
  static size_t live_modules() { return modules; }

  /// A sluice_hip_resolver.
  static void *resolve(const char *name, void *) {
#define SLUICE_ENTRY(entry, parameters)                                                                      \
  if (std::string_view(name) == #entry) return Entry<int parameters, entry##_name, false>::bind();
    SLUICE_HIP_REQUIRED(SLUICE_ENTRY)
#undef SLUICE_ENTRY
#define SLUICE_ENTRY(entry, parameters)                                                                      \
  if (std::string_view(name) == #entry) return Entry<int parameters, entry##_name, true>::bind();
    SLUICE_HIP_OPTIONAL(SLUICE_ENTRY)
#undef SLUICE_ENTRY
    return sluice_emulator_symbol(name);
  }

private:
#define SLUICE_ENTRY(entry, parameters) static constexpr char entry##_name[] = #entry;
  SLUICE_HIP_REQUIRED(SLUICE_ENTRY)
  SLUICE_HIP_OPTIONAL(SLUICE_ENTRY)
#undef SLUICE_ENTRY

  /// Counts a call; returns whether it fails.
  static bool fails(const char *name, bool is_optional) {
    if (is_optional && !fault.optional_too) return false;
    const size_t number = made.size();
    made.push_back(name);
    if (!fault.at || (fault.sticks ? number < *fault.at : number != *fault.at)) return false;
    if (failed.empty()) failed = name;
    return true;
  }

  template <typename Function, const char *name, bool is_optional> struct Entry;
  template <typename... Parameters, const char *name, bool is_optional>
  struct Entry<int(Parameters...), name, is_optional> {
    static constexpr bool unloads = std::string_view(name) == "hipModuleUnload";
    static inline int (*emulated)(Parameters...);
    static void *bind() {
      emulated = reinterpret_cast<int (*)(Parameters...)>(sluice_emulator_symbol(name));
      return emulated == nullptr ? nullptr : reinterpret_cast<void *>(&call);
    }
    static int call(Parameters... parameters) {
      const bool is_failing = fails(name, is_optional);
      const int result = is_failing && !unloads ? fault.error : emulated(parameters...);
      if (result == 0) {
        modules += std::string_view(name) == "hipModuleLoadData";
        modules -= unloads;
      }
      return is_failing ? fault.error : result;
    }
  };

  static inline HipFault fault;
  static inline std::vector<const char *> made;
  static inline std::string failed;
  static inline size_t modules = 0;
};

} // namespace sluice::test
