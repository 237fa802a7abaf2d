//===- device_settings.cpp - HIP's functions for the settings of a device, and its reset ----------------===//
//
// Programs may choose caches, banks and ways to wait, which a device with one kind of each need not obey: a
// valid choice succeeds and changes nothing. Limits are kept, but a kernel's stack and heap do not follow
// them.
//
//===----------------------------------------------------------------------------------------------------===//
#include <array>
#include <atomic>
#include <cstdio>
#include <cstring>

#include "emulator/hip/capture.h"
#include "emulator/hip/device.h"
#include "emulator/hip/error.h"
#include "emulator/hip/functions.h"
#include "emulator/hip/pools.h"
#include "emulator/hip/scheduler.h"
#include "emulator/hip/streams.h"

namespace sluice::emulator::hip {

namespace {

constexpr size_t default_stack_bytes = 1024;
constexpr size_t most_stack_bytes = 131056; // of a lane's scratch
constexpr size_t default_heap_bytes = 8 << 20;

constexpr int last_cache_preference = 3; // hipFuncCachePreferEqual
constexpr int last_bank_size = 2;        // hipSharedMemBankSizeEightByte
constexpr int four_byte_banks = 1;

// hipSetDeviceFlags: how the host waits (one of the first three, or none), and two that are always so.
constexpr unsigned schedule_spin = 1;
constexpr unsigned schedule_yield = 2;
constexpr unsigned schedule_blocking_sync = 4;
constexpr unsigned schedule_mask = 7;
constexpr unsigned device_flags = schedule_mask | 8 | 16; // hipDeviceMapHost, hipDeviceLmemResizeToMax

constexpr int pci_id_bytes = 13; // "0000:01:00.0" and its end

struct Settings {
  std::atomic<size_t> stack_bytes = default_stack_bytes;
  std::atomic<size_t> heap_bytes = default_heap_bytes;
  std::atomic<unsigned> flags = schedule_spin;
};

Settings &settings_of(int device) {
  static std::array<Settings, MemoryBlock::most_devices> all;
  return all[size_t(device)];
}

std::atomic<size_t> &limit_of_current_device(hipLimit_t limit) {
  Settings &settings = settings_of(current_device());
  switch (limit) {
  case hipLimitStackSize:
    return settings.stack_bytes;
  case hipLimitMallocHeapSize:
    return settings.heap_bytes;
  case hipLimitPrintfFifoSize:
    throw Failure(hipErrorUnsupportedLimit);
  }
  throw Failure(hipErrorInvalidValue);
}

std::array<char, pci_id_bytes> pci_id(int device) {
  std::array<char, pci_id_bytes> text;
  std::snprintf(text.data(), text.size(), "0000:%02x:00.0", unsigned(uint8_t(device)));
  return text;
}

void free_memory_of(int device) {
  for (const MemoryBlock &block : Device::get().memory().snapshot()->blocks()) {
    if (block.freed || block.attached || block.device != device) continue;
    void *const start = reinterpret_cast<void *>(block.address);
    if (Device::get().memory().release(start)) return_to_pool(start);
  }
}

} // namespace

hipError_t hipDeviceGetLimit(size_t *value, hipLimit_t limit) {
  return call([&] {
    require(value != nullptr, hipErrorInvalidValue);
    *value = limit_of_current_device(limit);
  });
}

hipError_t hipDeviceSetLimit(hipLimit_t limit, size_t value) {
  return call([&] {
    std::atomic<size_t> &place = limit_of_current_device(limit);
    require(limit != hipLimitStackSize || value <= most_stack_bytes, hipErrorInvalidValue);
    place = value;
  });
}

hipError_t hipDeviceGetCacheConfig(int *config) {
  return call([&] {
    require(config != nullptr, hipErrorInvalidValue);
    *config = 0;
  });
}

hipError_t hipDeviceSetCacheConfig(int config) {
  return call([&] { require(config >= 0 && config <= last_cache_preference, hipErrorInvalidValue); });
}

hipError_t hipDeviceGetSharedMemConfig(int *config) {
  return call([&] {
    require(config != nullptr, hipErrorInvalidValue);
    *config = four_byte_banks;
  });
}

hipError_t hipDeviceSetSharedMemConfig(int config) {
  return call([&] { require(config >= 0 && config <= last_bank_size, hipErrorInvalidValue); });
}

hipError_t hipGetDeviceFlags(unsigned *flags) {
  return call([&] {
    require(flags != nullptr, hipErrorInvalidValue);
    *flags = settings_of(current_device()).flags;
  });
}

hipError_t hipSetDeviceFlags(unsigned flags) {
  return call([&] {
    const unsigned schedule = flags & schedule_mask;
    require(schedule == 0 || schedule == schedule_spin || schedule == schedule_yield ||
                schedule == schedule_blocking_sync,
            hipErrorInvalidValue);
    require((flags & ~device_flags) == 0, hipErrorInvalidValue);
    settings_of(current_device()).flags = flags;
  });
}

hipError_t hipDeviceGetPCIBusId(char *id, int size, int device) {
  return call([&] {
    require_device(device);
    require(id != nullptr && size >= pci_id_bytes, hipErrorInvalidValue);
    std::memcpy(id, pci_id(device).data(), pci_id_bytes);
  });
}

hipError_t hipDeviceGetByPCIBusId(int *device, const char *id) {
  return call([&] {
    require(device != nullptr && id != nullptr, hipErrorInvalidValue);
    for (int candidate = 0; candidate < Device::get().count(); ++candidate)
      if (std::strcmp(pci_id(candidate).data(), id) == 0) {
        *device = candidate;
        return;
      }
    throw Failure(hipErrorInvalidValue);
  });
}

hipError_t hipDeviceGetUuid(hipUUID *uuid, hipDevice_t device) {
  return call([&] {
    require_device(device);
    require(uuid != nullptr, hipErrorInvalidValue);
    *uuid = uuid_of(device);
  });
}

hipError_t hipDeviceComputeCapability(int *major, int *minor, hipDevice_t device) {
  return call([&] {
    require_device(device);
    require(major != nullptr && minor != nullptr, hipErrorInvalidValue);
    hipDeviceProp_t properties;
    const hipError_t error = hipGetDevicePropertiesR0600(&properties, device);
    require(error == hipSuccess, error);
    *major = properties.major;
    *minor = properties.minor;
  });
}

// Loaded code stays, because the program has registered it for good, and so does the error of a device that
// has faulted.
hipError_t hipDeviceReset() {
  return call([] {
    refuse_while_any_captures();
    const int device = current_device();
    destroy_streams(device);
    Scheduler::get().wait_all(device);
    free_memory_of(device);
    for (int peer = 0; peer < Device::get().count(); ++peer)
      if (peer != device) Device::get().set_peer_access(device, peer, false);
    Settings &settings = settings_of(device);
    settings.stack_bytes = default_stack_bytes;
    settings.heap_bytes = default_heap_bytes;
    settings.flags = schedule_spin;
  });
}

} // namespace sluice::emulator::hip
