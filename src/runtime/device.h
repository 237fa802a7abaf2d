//===- device.h - the device of a context ---------------------------------------------------------------===//
#pragma once

#include "runtime/hip_table.h"
#include "runtime/library.h"
#include "support/failure.h"
#include "support/log.h"

#include <sluice/sluice.h>

#include <cstdint>
#include <new>
#include <optional>
#include <string>
#include <string_view>

namespace sluice::runtime {

/// sluice_emulator_check_t
using ContentsCheck = int (*)(const void *call, char *message, size_t size);

struct Device {
  uint32_t kind = 0;    // sluice_device_kind
  int32_t ordinal = -1; // -1 for a target
  std::string chip;     // "gfx942"
  std::string arch;     // "gfx942:sramecc+:xnack-"
  std::string name;     // marketing name, may be empty
  std::string origin;   // of the HIP entry points
  uint32_t compute_units = 0;
  uint32_t wave_size = 0;
  uint32_t lds_bytes = 0;
  int32_t hip_runtime_version = 0;
  std::optional<HipTable> hip; // nothing for a target
  // From an emulator that has them (sluice/emulator.h), else null.
  int (*checks_contents)() = nullptr;
  int (*has_memory)(const void *address) = nullptr;
  int (*check_call)(void *stream, const char *name, ContentsCheck check, const void *call,
                    size_t bytes) = nullptr;
};

/// The device `ordinal` of a HIP runtime, real or not. Throws support::Failure: no_device or hip.
Device open_device(uint32_t kind, int32_t ordinal, const HipSource &source);

/// A chip by name and its number of compute units, "gfx942:304". Throws support::Failure: invalid_argument,
/// or wrong_arch for a chip that the library does not know.
Device named_target(std::string_view target);

/// Runs a part of a destructor: a failure can only go to the log, and not even there without memory for its
/// message.
template <typename Part> void report_failure(std::string_view what, Part &&part) noexcept {
  try {
    try {
      part();
    } catch (const support::Failure &failure) {
      support::log(support::LogLevel::error, support::text(what, ": ", failure.message()));
    }
  } catch (const std::bad_alloc &) {
  }
}

/// Makes a device current for a scope, and restores the thread's own.
class CurrentDevice {
public:
  explicit CurrentDevice(const Device &device);
  CurrentDevice(const CurrentDevice &) = delete;
  CurrentDevice &operator=(const CurrentDevice &) = delete;
  ~CurrentDevice();

private:
  const HipTable &hip;
  int previous = 0;
  bool changed = false;
};

} // namespace sluice::runtime
