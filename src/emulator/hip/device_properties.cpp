//===- device_properties.cpp - HIP's functions for the properties of a device ---------------------------===//
//
// The numbers are MI300X's: from AMD's data sheet and, for what only HIP's runtime knows, as its source
// computes them (clr, hip_device.cpp). Where an answer says which functions can be used, it is the
// emulator's. All devices are the same except for their PCI bus and UUID. An attribute is the property of the
// same name, so that the two always agree.
//
//===----------------------------------------------------------------------------------------------------===//
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <limits>

#include "emulator/hip/device.h"
#include "emulator/hip/error.h"
#include "emulator/hip/functions.h"

namespace sluice::emulator::hip {

namespace {

constexpr int clock_khz = 2100000;
constexpr int memory_clock_khz = 1300000;
constexpr int memory_bus_bits = 8192;
constexpr int timer_khz = 100000; // s_memrealtime
constexpr int l2_bytes = 4 << 20;
constexpr int registers_per_cu = 4 * 512 * 64; // four SIMDs of 512 registers for 64 lanes
constexpr int threads_per_cu = 32 * wave_lanes;
constexpr int largest_int = std::numeric_limits<int>::max();
constexpr int dies = 8;
constexpr int registers_per_thread = 512; // ArchVGPRs and AccVGPRs
constexpr int pci_chip = 0x74a1;

hipDeviceProp_t properties_of(int device) {
  hipDeviceProp_t p;
  std::memset(&p, 0, sizeof p);
  std::snprintf(p.name, sizeof p.name, "%s", device_name);
  std::snprintf(p.gcnArchName, sizeof p.gcnArchName, "%s", device_target);
  const hipUUID uuid = uuid_of(device);
  std::memcpy(p.uuid, uuid.bytes, sizeof p.uuid);
  p.totalGlobalMem = Device::get().memory().capacity_bytes();
  p.sharedMemPerBlock = p.sharedMemPerBlockOptin = lds_bytes;
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
  p.textureAlignment = p.texturePitchAlignment = p.surfaceAlignment = pitch_alignment;
  p.deviceOverlap = 1;
  p.multiProcessorCount = compute_units;
  p.canMapHostMemory = 1;
  p.concurrentKernels = 1;
  p.ECCEnabled = 1;
  p.asyncEngineCount = 8;
  p.unifiedAddressing = 1;
  p.memoryClockRate = memory_clock_khz;
  p.memoryBusWidth = memory_bus_bits;
  p.l2CacheSize = p.persistingL2CacheMaxSize = l2_bytes;
  p.maxThreadsPerMultiProcessor = threads_per_cu;
  p.globalL1CacheSupported = p.localL1CacheSupported = 1;
  p.sharedMemPerMultiprocessor = lds_bytes;
  p.regsPerMultiprocessor = registers_per_cu;
  p.hostNativeAtomicSupported = 1;
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
  p.clockInstructionRate = timer_khz;
  p.isLargeBar = 1;
  p.asicRevision = 1;
  return p;
}

template <auto member> int property(const hipDeviceProp_t &p) {
  if constexpr (std::is_same_v<decltype(member), size_t hipDeviceProp_t::*>)
    return int(std::min(p.*member, size_t(largest_int)));
  else
    return int(p.*member);
}
template <auto member, int axis> int extent(const hipDeviceProp_t &p) {
  return (p.*member)[axis];
}
template <int value> int constant(const hipDeviceProp_t &) {
  return value;
}

struct Attribute {
  int number; // hipDeviceAttribute_t
  int (*value)(const hipDeviceProp_t &);
};

using P = hipDeviceProp_t;

// Sizes of surfaces and textures: the chip has no images.
constexpr int first_image_attribute = 32;
constexpr int last_image_attribute = 54;

constexpr Attribute attributes[] = {
    {0, property<&P::ECCEnabled>},
    {1, property<&P::accessPolicyMaxWindowSize>},
    {2, property<&P::asyncEngineCount>},
    {3, property<&P::canMapHostMemory>},
    {4, property<&P::canUseHostPointerForRegisteredMem>},
    {5, property<&P::clockRate>},
    {6, property<&P::computeMode>},
    {7, property<&P::computePreemptionSupported>},
    {8, property<&P::concurrentKernels>},
    {9, property<&P::concurrentManagedAccess>},
    {10, property<&P::cooperativeLaunch>},
    {11, property<&P::cooperativeMultiDeviceLaunch>},
    {12, property<&P::deviceOverlap>},
    {13, property<&P::directManagedMemAccessFromHost>},
    {14, property<&P::globalL1CacheSupported>},
    {15, property<&P::hostNativeAtomicSupported>},
    {16, property<&P::integrated>},
    {17, property<&P::isMultiGpuBoard>},
    {18, property<&P::kernelExecTimeoutEnabled>},
    {19, property<&P::l2CacheSize>},
    {20, property<&P::localL1CacheSupported>},
    {21, constant<0>}, // Luid: only Windows has it
    {22, property<&P::luidDeviceNodeMask>},
    {23, property<&P::major>},
    {24, property<&P::managedMemory>},
    {25, property<&P::maxBlocksPerMultiProcessor>},
    {26, extent<&P::maxThreadsDim, 0>},
    {27, extent<&P::maxThreadsDim, 1>},
    {28, extent<&P::maxThreadsDim, 2>},
    {29, extent<&P::maxGridSize, 0>},
    {30, extent<&P::maxGridSize, 1>},
    {31, extent<&P::maxGridSize, 2>},
    {55, extent<&P::maxThreadsDim, 0>}, // MaxThreadsDim
    {56, property<&P::maxThreadsPerBlock>},
    {57, property<&P::maxThreadsPerMultiProcessor>},
    {58, property<&P::memPitch>},
    {59, property<&P::memoryBusWidth>},
    {60, property<&P::memoryClockRate>},
    {61, property<&P::minor>},
    {62, property<&P::multiGpuBoardGroupID>},
    {63, property<&P::multiProcessorCount>},
    {65, property<&P::pageableMemoryAccess>},
    {66, property<&P::pageableMemoryAccessUsesHostPageTables>},
    {67, property<&P::pciBusID>},
    {68, property<&P::pciDeviceID>},
    {69, property<&P::pciDomainID>},
    {70, property<&P::persistingL2CacheMaxSize>},
    {71, property<&P::regsPerBlock>},
    {72, property<&P::regsPerMultiprocessor>},
    {73, property<&P::reservedSharedMemPerBlock>},
    {74, property<&P::sharedMemPerBlock>},
    {75, property<&P::sharedMemPerBlockOptin>},
    {76, property<&P::sharedMemPerMultiprocessor>},
    {77, property<&P::singleToDoublePrecisionPerfRatio>},
    {78, property<&P::streamPrioritiesSupported>},
    {79, property<&P::surfaceAlignment>},
    {80, property<&P::tccDriver>},
    {81, property<&P::textureAlignment>},
    {82, property<&P::texturePitchAlignment>},
    {83, property<&P::totalConstMem>},
    {84, property<&P::totalGlobalMem>},
    {85, property<&P::unifiedAddressing>},
    {87, property<&P::warpSize>},
    {88, property<&P::memoryPoolsSupported>},
    {89, constant<0>}, // VirtualMemoryManagementSupported
    {90, property<&P::hostRegisterSupported>},
    {91, property<&P::memoryPoolSupportedHandleTypes>},
    {92, constant<-1>}, // HostNumaId: no NUMA
    {93, constant<0>},  // DmaBufSupported
    {94, constant<0>},  // GPUDirectRDMAWithHipVMMSupported
    {95, constant<0>},  // HandleTypeFabricSupported
    {96, constant<0>},  // HostAllocDmaBufSupported
    {97, property<&P::gpuDirectRDMASupported>},
    {98, property<&P::gpuDirectRDMAFlushWritesOptions>},
    {99, property<&P::gpuDirectRDMAWritesOrdering>},
    {10000, property<&P::clockInstructionRate>},
    {10002, property<&P::maxSharedMemoryPerMultiProcessor>},
    {10007, extent<&P::cooperativeMultiDeviceUnmatched, 0>}, // ...Func
    {10008, extent<&P::cooperativeMultiDeviceUnmatched, 1>}, // ...GridDim
    {10009, extent<&P::cooperativeMultiDeviceUnmatched, 2>}, // ...BlockDim
    {10010, extent<&P::cooperativeMultiDeviceUnmatched, 3>}, // ...SharedMem
    {10011, property<&P::isLargeBar>},
    {10012, property<&P::asicRevision>},
    {10013, constant<0>}, // CanUseStreamWaitValue: the emulator does not have hipStreamWaitValue32
    {10014, constant<0>}, // ImageSupport
    {10015, property<&P::multiProcessorCount>}, // PhysicalMultiProcessorCount
    {10016, constant<1>},                       // FineGrainSupport
    {10017, constant<timer_khz>},               // WallClockRate
    {10018, constant<dies>},                    // NumberOfXccs
    {10019, constant<registers_per_thread>},    // MaxAvailableVgprsPerThread
    {10020, constant<pci_chip>},                // PciChipId
    {10021, constant<0>},                       // ExpertSchedMode
    {10022, constant<0>},                       // MaxDynDataPrefetchRegions
};

// Addresses of registers that flush the host's path to memory. As in HIP, the answer is a pointer.
constexpr int first_flush_attribute = 10005;
constexpr int last_flush_attribute = 10006;

} // namespace

hipUUID uuid_of(int device) {
  hipUUID uuid;
  char text[sizeof uuid.bytes + 1];
  std::snprintf(text, sizeof text, "%016x", unsigned(device));
  std::memcpy(uuid.bytes, text, sizeof uuid.bytes);
  return uuid;
}

hipError_t hipDeviceGetAttribute(int *value, int attribute, int device) {
  return call([&] {
    require(value != nullptr, hipErrorInvalidValue);
    require_device(device);
    if (attribute >= first_image_attribute && attribute <= last_image_attribute) {
      *value = 0;
      return;
    }
    if (attribute >= first_flush_attribute && attribute <= last_flush_attribute) {
      constexpr unsigned *no_register = nullptr;
      std::memcpy(value, &no_register, sizeof no_register);
      return;
    }
    const auto *const known = std::ranges::find(attributes, attribute, &Attribute::number);
    require(known != std::end(attributes), hipErrorInvalidValue);
    *value = known->value(properties_of(device));
  });
}

hipError_t hipGetDevicePropertiesR0600(hipDeviceProp_t *properties, int device) {
  return call([&] {
    require(properties != nullptr, hipErrorInvalidValue);
    require_device(device);
    *properties = properties_of(device);
  });
}

} // namespace sluice::emulator::hip
