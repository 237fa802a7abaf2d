//===- registration_functions.cpp - the functions that compiled HIP programs call -----------------------===//
//
// Each finds the kernel or variable that a host address names; HIP's module functions do the rest.
//
//===----------------------------------------------------------------------------------------------------===//
#include <algorithm>
#include <limits>

#include "emulator/hip/device.h"
#include "emulator/hip/error.h"
#include "emulator/hip/functions.h"
#include "emulator/hip/registration.h"
#include "emulator/hip/thread_state.h"

namespace sluice::emulator::hip {

namespace {

struct CallConfiguration {
  dim3 grid;
  dim3 block;
  size_t dynamic_lds_bytes;
  hipStream_t stream;
};
PerThread<std::vector<CallConfiguration>>
    open_configurations; // of launches being written as kernel<<<...>>>()

FatBinary *binary_of(void **handle) {
  return reinterpret_cast<FatBinary *>(handle);
}

hipError_t launch(hipFunction_t function, dim3 grid, dim3 block, void **parameters, size_t dynamic_lds_bytes,
                  hipStream_t stream) {
  require(dynamic_lds_bytes <= std::numeric_limits<uint32_t>::max(), hipErrorInvalidValue);
  return hipModuleLaunchKernel(function, grid.x, grid.y, grid.z, block.x, block.y, block.z,
                               unsigned(dynamic_lds_bytes), stream, parameters, nullptr);
}

/// The part of a variable that a copy affects.
std::byte *piece(const void *symbol, size_t size, size_t offset) {
  const Registry::Variable variable = Registry::get().variable(symbol);
  require(offset <= variable.size && size <= variable.size - offset, hipErrorInvalidValue);
  return variable.address + offset;
}

void require_kind(hipMemcpyKind kind, hipMemcpyKind host_kind) {
  require(kind == host_kind || kind == hipMemcpyDeviceToDevice || kind == hipMemcpyDefault,
          hipErrorInvalidMemcpyDirection);
}

int attribute_of(hipFunction_t function, hipFunction_attribute attribute) {
  int value = 0;
  const hipError_t error = hipFuncGetAttribute(&value, attribute, function);
  require(error == hipSuccess, error);
  return value;
}

} // namespace

void **__hipRegisterFatBinary(const void *wrapper) {
  return reinterpret_cast<void **>(Registry::get().add(wrapper));
}

void __hipUnregisterFatBinary(void **binary) {
  if (is_orphaned()) return;
  Registry::get().remove(binary_of(binary));
}

void __hipRegisterFunction(void **binary, const void *kernel, char *, const char *device_name, unsigned,
                           void *, void *, void *, void *, int *) {
  Registry::get().add_kernel(binary_of(binary), kernel, device_name);
}

void __hipRegisterVar(void **binary, void *variable, char *, char *device_name, int, size_t, int, int) {
  Registry::get().add_variable(binary_of(binary), variable, device_name);
}

void __hipRegisterManagedVar(void **binary, void **pointer, const void *initial, const char *name,
                             size_t size, unsigned) {
  Registry::get().add_managed(binary_of(binary), pointer, initial, name, size);
}

hipError_t __hipPushCallConfiguration(dim3 grid, dim3 block, size_t dynamic_lds_bytes, hipStream_t stream) {
  return call([&] { open_configurations.get().push_back({grid, block, dynamic_lds_bytes, stream}); });
}

hipError_t __hipPopCallConfiguration(dim3 *grid, dim3 *block, size_t *dynamic_lds_bytes,
                                     hipStream_t *stream) {
  return call([&] {
    std::vector<CallConfiguration> &configurations = open_configurations.get();
    require(!configurations.empty(), hipErrorMissingConfiguration);
    const CallConfiguration top = configurations.back();
    configurations.pop_back();
    *grid = top.grid;
    *block = top.block;
    *dynamic_lds_bytes = top.dynamic_lds_bytes;
    *stream = top.stream;
  });
}

hipError_t hipLaunchKernel(const void *kernel, dim3 grid, dim3 block, void **parameters,
                           size_t dynamic_lds_bytes, hipStream_t stream) {
  return call([&] {
    return launch(Registry::get().function(kernel), grid, block, parameters, dynamic_lds_bytes, stream);
  });
}

hipError_t hipLaunchKernelExC(const hipLaunchConfig_t *config, const void *kernel, void **parameters) {
  return call([&] {
    require(config != nullptr, hipErrorInvalidValue);
    require(config->numAttrs == 0, hipErrorNotSupported);
    return launch(Registry::get().function(kernel), config->gridDim, config->blockDim, parameters,
                  config->dynamicSmemBytes, config->stream);
  });
}

hipError_t hipExtLaunchKernel(const void *kernel, dim3 grid, dim3 block, void **parameters,
                              size_t dynamic_lds_bytes, hipStream_t stream, hipEvent_t start, hipEvent_t stop,
                              int flags) {
  return call([&] {
    // The only flag lets the launch overtake others, which is not required.
    require(flags == 0 || flags == 1, hipErrorInvalidValue);
    const hipFunction_t function = Registry::get().function(kernel);
    if (start != nullptr) {
      const hipError_t error = hipEventRecord(start, stream);
      require(error == hipSuccess, error);
    }
    const hipError_t error = launch(function, grid, block, parameters, dynamic_lds_bytes, stream);
    require(error == hipSuccess, error);
    return stop != nullptr ? hipEventRecord(stop, stream) : hipSuccess;
  });
}

hipError_t hipLaunchCooperativeKernel(const void *kernel, dim3 grid, dim3 block, void **parameters,
                                      unsigned dynamic_lds_bytes, hipStream_t stream) {
  return call([&] {
    return hipModuleLaunchCooperativeKernel(Registry::get().function(kernel), grid.x, grid.y, grid.z, block.x,
                                            block.y, block.z, dynamic_lds_bytes, stream, parameters);
  });
}

hipError_t hipGetFuncBySymbol(hipFunction_t *function, const void *kernel) {
  return call([&] {
    require(function != nullptr, hipErrorInvalidValue);
    *function = Registry::get().function(kernel);
  });
}

hipError_t hipFuncGetAttributes(hipFuncAttributes *attributes, const void *kernel) {
  return call([&] {
    require(attributes != nullptr, hipErrorInvalidValue);
    const hipFunction_t function = Registry::get().function(kernel);
    const auto get = [&](hipFunction_attribute attribute) { return attribute_of(function, attribute); };
    *attributes = {
        .binaryVersion = get(HIP_FUNC_ATTRIBUTE_BINARY_VERSION),
        .cacheModeCA = get(HIP_FUNC_ATTRIBUTE_CACHE_MODE_CA),
        .constSizeBytes = size_t(get(HIP_FUNC_ATTRIBUTE_CONST_SIZE_BYTES)),
        .localSizeBytes = size_t(get(HIP_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES)),
        .maxDynamicSharedSizeBytes = get(HIP_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES),
        .maxThreadsPerBlock = get(HIP_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK),
        .numRegs = get(HIP_FUNC_ATTRIBUTE_NUM_REGS),
        .preferredShmemCarveout = get(HIP_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT),
        .ptxVersion = get(HIP_FUNC_ATTRIBUTE_PTX_VERSION),
        .sharedSizeBytes = size_t(get(HIP_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)),
    };
  });
}

// A kernel may always use all of LDS, and a carve-out cannot be chosen.
hipError_t hipFuncSetAttribute(const void *kernel, hipFunction_attribute attribute, int value) {
  return call([&] {
    const hipFunction_t function = Registry::get().function(kernel);
    switch (attribute) {
    case HIP_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
      require(value >= 0 && value <= attribute_of(function, attribute), hipErrorInvalidValue);
      return;
    case HIP_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
      require(value >= -1 && value <= 100, hipErrorInvalidValue);
      return;
    default:
      throw Failure(hipErrorInvalidValue);
    }
  });
}

hipError_t hipFuncSetCacheConfig(const void *kernel, int config) {
  return call([&] {
    require(config >= 0 && config <= 3, hipErrorInvalidValue);
    Registry::get().function(kernel);
  });
}

hipError_t hipFuncSetSharedMemConfig(const void *kernel, int config) {
  return call([&] {
    require(config >= 0 && config <= 2, hipErrorInvalidValue);
    Registry::get().function(kernel);
  });
}

hipError_t hipGetSymbolAddress(void **address, const void *symbol) {
  return call([&] {
    require(address != nullptr, hipErrorInvalidValue);
    *address = Registry::get().variable(symbol).address;
  });
}

hipError_t hipGetSymbolSize(size_t *size, const void *symbol) {
  return call([&] {
    require(size != nullptr, hipErrorInvalidValue);
    *size = Registry::get().variable(symbol).size;
  });
}

hipError_t hipMemcpyToSymbol(const void *symbol, const void *from, size_t size, size_t offset,
                             hipMemcpyKind kind) {
  return call([&] {
    require_kind(kind, hipMemcpyHostToDevice);
    return hipMemcpy(piece(symbol, size, offset), from, size, kind);
  });
}

hipError_t hipMemcpyToSymbolAsync(const void *symbol, const void *from, size_t size, size_t offset,
                                  hipMemcpyKind kind, hipStream_t stream) {
  return call([&] {
    require_kind(kind, hipMemcpyHostToDevice);
    return hipMemcpyAsync(piece(symbol, size, offset), from, size, kind, stream);
  });
}

hipError_t hipMemcpyFromSymbol(void *to, const void *symbol, size_t size, size_t offset, hipMemcpyKind kind) {
  return call([&] {
    require_kind(kind, hipMemcpyDeviceToHost);
    return hipMemcpy(to, piece(symbol, size, offset), size, kind);
  });
}

hipError_t hipMemcpyFromSymbolAsync(void *to, const void *symbol, size_t size, size_t offset,
                                    hipMemcpyKind kind, hipStream_t stream) {
  return call([&] {
    require_kind(kind, hipMemcpyDeviceToHost);
    return hipMemcpyAsync(to, piece(symbol, size, offset), size, kind, stream);
  });
}

hipError_t hipOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *kernel, int block_size,
                                                        size_t dynamic_lds_bytes) {
  return call([&] {
    return hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(blocks, Registry::get().function(kernel),
                                                              block_size, dynamic_lds_bytes);
  });
}

hipError_t hipOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, const void *kernel,
                                                                 int block_size, size_t dynamic_lds_bytes,
                                                                 unsigned flags) {
  return call([&] {
    require(flags == 0, hipErrorInvalidValue);
    return hipOccupancyMaxActiveBlocksPerMultiprocessor(blocks, kernel, block_size, dynamic_lds_bytes);
  });
}

hipError_t hipOccupancyMaxPotentialBlockSize(int *grid_size, int *block_size, const void *kernel,
                                             size_t dynamic_lds_bytes, int block_size_limit) {
  return call([&] {
    return hipModuleOccupancyMaxPotentialBlockSize(grid_size, block_size, Registry::get().function(kernel),
                                                   dynamic_lds_bytes, block_size_limit);
  });
}

hipError_t hipGetDevicePropertiesR0000(hipDeviceProp_tR0000 *properties, int device) {
  return call([&] {
    require(properties != nullptr, hipErrorInvalidValue);
    hipDeviceProp_t now;
    const hipError_t error = hipGetDevicePropertiesR0600(&now, device);
    require(error == hipSuccess, error);
    hipDeviceProp_tR0000 old = {};
    std::ranges::copy(now.name, old.name);
    std::ranges::copy(now.gcnArchName, old.gcnArchName);
    std::ranges::copy(now.maxThreadsDim, old.maxThreadsDim);
    std::ranges::copy(now.maxGridSize, old.maxGridSize);
    old.totalGlobalMem = now.totalGlobalMem;
    old.sharedMemPerBlock = now.sharedMemPerBlock;
    old.regsPerBlock = now.regsPerBlock;
    old.warpSize = now.warpSize;
    old.maxThreadsPerBlock = now.maxThreadsPerBlock;
    old.clockRate = now.clockRate;
    old.memoryClockRate = now.memoryClockRate;
    old.memoryBusWidth = now.memoryBusWidth;
    old.totalConstMem = now.totalConstMem;
    old.major = now.major;
    old.minor = now.minor;
    old.multiProcessorCount = now.multiProcessorCount;
    old.l2CacheSize = now.l2CacheSize;
    old.maxThreadsPerMultiProcessor = now.maxThreadsPerMultiProcessor;
    old.computeMode = now.computeMode;
    old.clockInstructionRate = now.clockInstructionRate;
    old.arch = now.arch;
    old.concurrentKernels = now.concurrentKernels;
    old.pciDomainID = now.pciDomainID;
    old.pciBusID = now.pciBusID;
    old.pciDeviceID = now.pciDeviceID;
    old.maxSharedMemoryPerMultiProcessor = now.maxSharedMemoryPerMultiProcessor;
    old.isMultiGpuBoard = now.isMultiGpuBoard;
    old.canMapHostMemory = now.canMapHostMemory;
    old.gcnArch = 942;
    old.integrated = now.integrated;
    old.cooperativeLaunch = now.cooperativeLaunch;
    old.cooperativeMultiDeviceLaunch = now.cooperativeMultiDeviceLaunch;
    old.memPitch = now.memPitch;
    old.kernelExecTimeoutEnabled = now.kernelExecTimeoutEnabled;
    old.ECCEnabled = now.ECCEnabled;
    old.isLargeBar = now.isLargeBar;
    old.asicRevision = now.asicRevision;
    old.managedMemory = now.managedMemory;
    old.directManagedMemAccessFromHost = now.directManagedMemAccessFromHost;
    old.concurrentManagedAccess = now.concurrentManagedAccess;
    old.pageableMemoryAccess = now.pageableMemoryAccess;
    old.pageableMemoryAccessUsesHostPageTables = now.pageableMemoryAccessUsesHostPageTables;
    *properties = old;
  });
}

hipError_t hipGetDeviceProperties(hipDeviceProp_tR0000 *properties, int device) {
  return hipGetDevicePropertiesR0000(properties, device);
}

} // namespace sluice::emulator::hip
