//===- device_functions.cpp - HIP's functions about the device and its errors ---------------------------===//
//
// The numbers are MI300X's. All devices are the same except for their PCI bus.
//
//===----------------------------------------------------------------------------------------------------===//
#include <cstdio>
#include <cstring>

#include "emulator/hip/capture.h"
#include "emulator/hip/device.h"
#include "emulator/hip/error.h"
#include "emulator/hip/functions.h"
#include "emulator/hip/scheduler.h"

namespace sluice::emulator::hip {

namespace {

constexpr int clock_khz = 2100000;
constexpr int memory_clock_khz = 1300000;
constexpr int memory_bus_bits = 8192;
constexpr int l2_bytes = 4 << 20;
constexpr int registers_per_cu = 4 * 512 * 64; // four SIMDs of 512 registers for 64 lanes
constexpr int threads_per_cu = 32 * wave_lanes;
constexpr int largest_int = 0x7fffffff;

// The only difference between devices.
constexpr int pci_bus_attribute = 67;

struct Attribute {
  int number; // hipDeviceAttribute_t
  int value;
};

constexpr Attribute attributes[] = {
    {0, 1},                      // EccEnabled
    {2, 8},                      // AsyncEngineCount
    {3, 1},                      // CanMapHostMemory
    {4, 1},                      // CanUseHostPointerForRegisteredMem
    {5, clock_khz},              // ClockRate
    {6, 0},                      // ComputeMode
    {7, 0},                      // ComputePreemptionSupported
    {8, 1},                      // ConcurrentKernels
    {9, 1},                      // ConcurrentManagedAccess
    {10, 1},                     // CooperativeLaunch
    {11, 0},                     // CooperativeMultiDeviceLaunch
    {12, 1},                     // DeviceOverlap
    {13, 0},                     // DirectManagedMemAccessFromHost
    {16, 0},                     // Integrated
    {17, 0},                     // IsMultiGpuBoard
    {18, 0},                     // KernelExecTimeout
    {19, l2_bytes},              // L2CacheSize
    {23, 9},                     // ComputeCapabilityMajor
    {24, 1},                     // ManagedMemory
    {25, 32},                    // MaxBlocksPerMultiProcessor
    {26, max_workgroup_threads}, // MaxBlockDimX
    {27, max_workgroup_threads}, // MaxBlockDimY
    {28, max_workgroup_threads}, // MaxBlockDimZ
    {29, largest_int},           // MaxGridDimX
    {30, 65536},                 // MaxGridDimY
    {31, 65536},                 // MaxGridDimZ
    {56, max_workgroup_threads}, // MaxThreadsPerBlock
    {57, threads_per_cu},        // MaxThreadsPerMultiProcessor
    {58, largest_int},           // MaxPitch
    {59, memory_bus_bits},       // MemoryBusWidth
    {60, memory_clock_khz},      // MemoryClockRate
    {61, 4},                     // ComputeCapabilityMinor
    {63, compute_units},         // MultiprocessorCount
    {65, 0},                     // PageableMemoryAccess
    {68, 0},                     // PciDeviceId
    {69, 0},                     // PciDomainID
    {71, 65536},                 // MaxRegistersPerBlock
    {72, registers_per_cu},      // MaxRegistersPerMultiprocessor
    {73, 0},                     // ReservedSharedMemPerBlock
    {74, lds_bytes},             // MaxSharedMemoryPerBlock
    {75, 0},                     // SharedMemPerBlockOptin
    {76, lds_bytes},             // SharedMemPerMultiprocessor
    {78, 1},                     // StreamPrioritiesSupported
    {83, largest_int},           // TotalConstantMemory
    {85, 1},                     // UnifiedAddressing
    {87, wave_lanes},            // WarpSize
    {88, 1},                     // MemoryPoolsSupported
    {10000, 100000},             // ClockInstructionRate
    {10002, lds_bytes},          // MaxSharedMemoryPerMultiprocessor
    {10011, 1},                  // IsLargeBar
    {10012, 1},                  // AsicRevision
    {10014, 0},                  // ImageSupport
    {10015, compute_units},      // PhysicalMultiProcessorCount
    {10016, 1},                  // FineGrainSupport
};

template <typename T> void store(T *out, T value) {
  require(out != nullptr, hipErrorInvalidValue);
  *out = value;
}

} // namespace

hipError_t hipInit(unsigned flags) {
  return call([&] { require(flags == 0, hipErrorInvalidValue); });
}

hipError_t hipRuntimeGetVersion(int *version) {
  return call([&] { store(version, hip_version); });
}

hipError_t hipDriverGetVersion(int *version) {
  return call([&] { store(version, hip_version); });
}

hipError_t hipGetDeviceCount(int *count) {
  return call([&] { store(count, Device::get().count()); });
}

hipError_t hipSetDevice(int device) {
  return call([&] { set_current_device(device); });
}

hipError_t hipGetDevice(int *device) {
  return call([&] { store(device, current_device()); });
}

hipError_t hipDeviceGet(hipDevice_t *device, int ordinal) {
  return call([&] {
    require_device(ordinal);
    store(device, ordinal);
  });
}

hipError_t hipDeviceGetName(char *name, int size, hipDevice_t device) {
  return call([&] {
    require_device(device);
    require(name != nullptr && size > 0, hipErrorInvalidValue);
    std::snprintf(name, size_t(size), "%s", device_name);
  });
}

hipError_t hipDeviceTotalMem(size_t *bytes, hipDevice_t device) {
  return call([&] {
    require_device(device);
    store(bytes, size_t(Device::get().memory().capacity_bytes()));
  });
}

hipError_t hipDeviceGetAttribute(int *value, int attribute, int device) {
  return call([&] {
    require_device(device);
    require(value != nullptr, hipErrorInvalidValue);
    if (attribute == pci_bus_attribute) {
      *value = device;
      return;
    }
    for (const Attribute &known : attributes)
      if (known.number == attribute) {
        *value = known.value;
        return;
      }
    throw Failure(hipErrorInvalidValue);
  });
}

hipError_t hipGetDevicePropertiesR0600(hipDeviceProp_t *properties, int device) {
  return call([&] {
    require(properties != nullptr, hipErrorInvalidValue);
    require_device(device);
    hipDeviceProp_t p;
    std::memset(&p, 0, sizeof p);
    std::snprintf(p.name, sizeof p.name, "%s", device_name);
    std::snprintf(p.gcnArchName, sizeof p.gcnArchName, "%s", device_target);
    p.totalGlobalMem = Device::get().memory().capacity_bytes();
    p.sharedMemPerBlock = lds_bytes;
    p.regsPerBlock = 65536;
    p.warpSize = wave_lanes;
    p.memPitch = largest_int;
    p.maxThreadsPerBlock = max_workgroup_threads;
    for (int axis = 0; axis < 3; ++axis) {
      p.maxThreadsDim[axis] = max_workgroup_threads;
      p.maxGridSize[axis] = axis == 0 ? largest_int : 65536;
    }
    p.clockRate = clock_khz;
    p.totalConstMem = largest_int;
    p.major = 9;
    p.minor = 4;
    p.deviceOverlap = 1;
    p.multiProcessorCount = compute_units;
    p.canMapHostMemory = 1;
    p.concurrentKernels = 1;
    p.ECCEnabled = 1;
    p.asyncEngineCount = 8;
    p.unifiedAddressing = 1;
    p.memoryClockRate = memory_clock_khz;
    p.memoryBusWidth = memory_bus_bits;
    p.l2CacheSize = l2_bytes;
    p.maxThreadsPerMultiProcessor = threads_per_cu;
    p.sharedMemPerMultiprocessor = lds_bytes;
    p.regsPerMultiprocessor = registers_per_cu;
    p.canUseHostPointerForRegisteredMem = 1;
    p.maxBlocksPerMultiProcessor = 32;
    p.streamPrioritiesSupported = 1;
    p.managedMemory = 1;
    p.concurrentManagedAccess = 1;
    p.cooperativeLaunch = 1;
    p.memoryPoolsSupported = 1;
    p.pciBusID = device;
    p.hostRegisterSupported = 1;
    p.maxSharedMemoryPerMultiProcessor = lds_bytes;
    p.clockInstructionRate = 100000;
    p.isLargeBar = 1;
    p.asicRevision = 1;
    *properties = p;
  });
}

hipError_t hipDeviceCanAccessPeer(int *can, int device, int peer) {
  return call([&] {
    require_device(device);
    require_device(peer);
    store(can, int(device != peer));
  });
}

hipError_t hipDeviceEnablePeerAccess(int peer, unsigned flags) {
  return call([&] {
    require(flags == 0, hipErrorInvalidValue);
    require_device(peer);
    require(peer != current_device(), hipErrorInvalidDevice);
    require(Device::get().set_peer_access(current_device(), peer, true), hipErrorPeerAccessAlreadyEnabled);
  });
}

hipError_t hipDeviceDisablePeerAccess(int peer) {
  return call([&] {
    require_device(peer);
    require(peer != current_device() && Device::get().set_peer_access(current_device(), peer, false),
            hipErrorPeerAccessNotEnabled);
  });
}

hipError_t hipDeviceGetStreamPriorityRange(int *least, int *greatest) {
  return call([&] {
    if (least) *least = least_stream_priority;
    if (greatest) *greatest = greatest_stream_priority;
  });
}

hipError_t hipDeviceSynchronize() {
  return call([] {
    refuse_while_any_captures();
    Scheduler::get().wait_all(current_device());
    Scheduler::get().require_no_fault(current_device());
  });
}

hipError_t hipGetLastError() {
  return take_last_error();
}

hipError_t hipPeekAtLastError() {
  return last_error();
}

} // namespace sluice::emulator::hip
