//===- device.h - the GPU, or the emulator in its place -------------------------------------------------===//
//
// The program links no HIP. Memory comes from the runtime that the sluice context is bound to, through
// sluice_context_hip_symbol, and so the same lines run on a GPU and on the emulator.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <sluice/sluice.h>
#include <span>
#include <string>

namespace jargon {

/// Throws std::runtime_error with the message of a call that did not return SLUICE_OK.
void check(sluice_status status, const sluice_error &error);

sluice_error make_error();

/// Filled in by the emulator's function sluice_emulator_counters; a GPU has no such function.
struct EmulatorCounters {
  uint64_t wave_instructions;
  uint64_t waves;
  uint64_t workgroups;
  uint64_t mfma_instructions;
  uint64_t lds_bank_conflicts;
  uint64_t launches;
};

struct Destroy {
  void operator()(sluice_context *context) const { sluice_context_destroy(context); }
  void operator()(sluice_plan *plan) const { sluice_plan_destroy(plan); }
};

class Device {
public:
  /// `name` is "emulated" or "hip:N".
  explicit Device(const std::string &name);
  Device(const Device &) = delete;
  Device &operator=(const Device &) = delete;

  void *allocate(size_t bytes);
  void release(void *memory);
  void upload(void *to, const void *from, size_t bytes);
  void download(void *to, const void *from, size_t bytes);
  void synchronise();

  sluice_context *handle() const { return context.get(); }
  std::string description() const;
  std::optional<EmulatorCounters> counters() const;
  /// Kernel name -> how often it ran.
  const std::map<std::string, uint64_t> &kernel_runs() const { return runs; }

  /// Calls a function of the HIP runtime; `Function` is its type. Throws std::runtime_error if the runtime
  /// has no such function, or with HIP's text if it returns an error.
  template <typename Function, typename... Arguments>
  void call(const char *name, Arguments... arguments) const {
    check_hip(symbol<Function>(name)(arguments...), name);
  }
  /// The same for destructors, which cannot report errors.
  template <typename Function, typename... Arguments>
  void call_quietly(const char *name, Arguments... arguments) const noexcept {
    static_cast<void>(symbol<Function>(name)(arguments...));
  }

private:
  void *find(const char *name) const;
  template <typename Function> Function *symbol(const char *name) const {
    return reinterpret_cast<Function *>(find(name));
  }
  void check_hip(int code, const char *what) const;

  std::unique_ptr<sluice_context, Destroy> context;
  std::map<std::string, uint64_t> runs;
};

/// Device memory that is freed with its owner.
class DeviceMemory {
public:
  DeviceMemory(Device &device, size_t bytes) : device(&device), memory(device.allocate(bytes)) {}
  DeviceMemory(const DeviceMemory &) = delete;
  DeviceMemory &operator=(const DeviceMemory &) = delete;
  DeviceMemory(DeviceMemory &&other) noexcept : device(other.device), memory(other.memory) {
    other.memory = nullptr;
  }
  ~DeviceMemory() {
    if (memory) device->release(memory);
  }
  void *data() const { return memory; }
  char *bytes() const { return static_cast<char *>(memory); }

private:
  Device *device;
  void *memory;
};

} // namespace jargon
