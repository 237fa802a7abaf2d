//===- program_functions.h - the functions that compiled HIP programs call ------------------------------===//
//
// A program compiled for host and device contains its code objects. The compiler's start-up code registers
// them; kernels and variables are then named by the addresses of their host counterparts.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "emulator/hip/types.h"

namespace sluice::emulator::hip {

struct hipFuncAttributes {
  int binaryVersion;
  int cacheModeCA;
  size_t constSizeBytes;
  size_t localSizeBytes;
  int maxDynamicSharedSizeBytes;
  int maxThreadsPerBlock;
  int numRegs;
  int preferredShmemCarveout;
  int ptxVersion;
  size_t sharedSizeBytes;
};
static_assert(sizeof(hipFuncAttributes) == 56);

struct hipLaunchConfig_t {
  dim3 gridDim;
  dim3 blockDim;
  size_t dynamicSmemBytes;
  hipStream_t stream;
  void *attrs;
  unsigned numAttrs;
};
static_assert(sizeof(hipLaunchConfig_t) == 56);

/// What hipGetDeviceProperties filled before HIP 6, and the symbol of that name still fills.
struct hipDeviceProp_tR0000 {
  char name[256];
  size_t totalGlobalMem;
  size_t sharedMemPerBlock;
  int regsPerBlock;
  int warpSize;
  int maxThreadsPerBlock;
  int maxThreadsDim[3];
  int maxGridSize[3];
  int clockRate;
  int memoryClockRate;
  int memoryBusWidth;
  size_t totalConstMem;
  int major;
  int minor;
  int multiProcessorCount;
  int l2CacheSize;
  int maxThreadsPerMultiProcessor;
  int computeMode;
  int clockInstructionRate;
  unsigned arch;
  int concurrentKernels;
  int pciDomainID;
  int pciBusID;
  int pciDeviceID;
  size_t maxSharedMemoryPerMultiProcessor;
  int isMultiGpuBoard;
  int canMapHostMemory;
  int gcnArch;
  char gcnArchName[256];
  int integrated;
  int cooperativeLaunch;
  int cooperativeMultiDeviceLaunch;
  int textures[7];
  unsigned *hdpMemFlushCntl;
  unsigned *hdpRegFlushCntl;
  size_t memPitch;
  size_t textureAlignment;
  size_t texturePitchAlignment;
  int kernelExecTimeoutEnabled;
  int ECCEnabled;
  int tccDriver;
  int cooperativeMultiDeviceUnmatched[4];
  int isLargeBar;
  int asicRevision;
  int managedMemory;
  int directManagedMemAccessFromHost;
  int concurrentManagedAccess;
  int pageableMemoryAccess;
  int pageableMemoryAccessUsesHostPageTables;
};
static_assert(sizeof(hipDeviceProp_tR0000) == 792);
static_assert(offsetof(hipDeviceProp_tR0000, multiProcessorCount) == 336);
static_assert(offsetof(hipDeviceProp_tR0000, maxSharedMemoryPerMultiProcessor) == 376);
static_assert(offsetof(hipDeviceProp_tR0000, gcnArchName) == 396);
static_assert(offsetof(hipDeviceProp_tR0000, memPitch) == 712);
static_assert(offsetof(hipDeviceProp_tR0000, asicRevision) == 768);

// Symbols and kernels are given by the addresses of their host counterparts. All return hipError_t.
#define SLUICE_HIP_PROGRAM_FUNCTIONS(F)                                                                      \
  F(__hipPushCallConfiguration, (dim3 grid, dim3 block, size_t dynamic_lds_bytes, hipStream_t stream))       \
  F(__hipPopCallConfiguration, (dim3 * grid, dim3 * block, size_t *dynamic_lds_bytes, hipStream_t *stream))  \
  F(hipLaunchKernel, (const void *kernel, dim3 grid, dim3 block, void **parameters,                          \
                      size_t dynamic_lds_bytes, hipStream_t stream))                                         \
  F(hipLaunchKernelExC, (const hipLaunchConfig_t *config, const void *kernel, void **parameters))            \
  F(hipExtLaunchKernel,                                                                                      \
    (const void *kernel, dim3 grid, dim3 block, void **parameters, size_t dynamic_lds_bytes,                 \
     hipStream_t stream, hipEvent_t start, hipEvent_t stop, int flags))                                      \
  F(hipLaunchCooperativeKernel, (const void *kernel, dim3 grid, dim3 block, void **parameters,               \
                                 unsigned dynamic_lds_bytes, hipStream_t stream))                            \
  F(hipGetFuncBySymbol, (hipFunction_t * function, const void *kernel))                                      \
  F(hipFuncGetAttributes, (hipFuncAttributes * attributes, const void *kernel))                              \
  F(hipFuncSetAttribute, (const void *kernel, hipFunction_attribute attribute, int value))                   \
  F(hipFuncSetSharedMemConfig, (const void *kernel, int config))                                             \
  F(hipFuncSetCacheConfig, (const void *kernel, int config))                                                 \
  F(hipGetSymbolAddress, (void **address, const void *symbol))                                               \
  F(hipGetSymbolSize, (size_t *size, const void *symbol))                                                    \
  F(hipMemcpyToSymbol,                                                                                       \
    (const void *symbol, const void *from, size_t size, size_t offset, hipMemcpyKind kind))                  \
  F(hipMemcpyToSymbolAsync, (const void *symbol, const void *from, size_t size, size_t offset,               \
                             hipMemcpyKind kind, hipStream_t stream))                                        \
  F(hipMemcpyFromSymbol, (void *to, const void *symbol, size_t size, size_t offset, hipMemcpyKind kind))     \
  F(hipMemcpyFromSymbolAsync,                                                                                \
    (void *to, const void *symbol, size_t size, size_t offset, hipMemcpyKind kind, hipStream_t stream))      \
  F(hipOccupancyMaxActiveBlocksPerMultiprocessor,                                                            \
    (int *blocks, const void *kernel, int block_size, size_t dynamic_lds_bytes))                             \
  F(hipOccupancyMaxActiveBlocksPerMultiprocessorWithFlags,                                                   \
    (int *blocks, const void *kernel, int block_size, size_t dynamic_lds_bytes, unsigned flags))             \
  F(hipOccupancyMaxPotentialBlockSize,                                                                       \
    (int *grid_size, int *block_size, const void *kernel, size_t dynamic_lds_bytes, int block_size_limit))   \
  F(hipGetDevicePropertiesR0000, (hipDeviceProp_tR0000 * properties, int device))                            \
  F(hipGetDeviceProperties, (hipDeviceProp_tR0000 * properties, int device))

// Called by the compiler's start-up code: F(result, name, parameters). `binary` is the handle that
// __hipRegisterFatBinary returned.
#define SLUICE_HIP_REGISTRATION_FUNCTIONS(F)                                                                 \
  F(void **, __hipRegisterFatBinary, (const void *wrapper))                                                  \
  F(void, __hipUnregisterFatBinary, (void **binary))                                                         \
  F(void, __hipRegisterFunction,                                                                             \
    (void **binary, const void *kernel, char *name, const char *device_name, unsigned thread_limit,          \
     void *thread_id, void *block_id, void *block_dim, void *grid_dim, int *wave_size))                      \
  F(void, __hipRegisterVar,                                                                                  \
    (void **binary, void *variable, char *name, char *device_name, int external, size_t size, int constant,  \
     int global))                                                                                            \
  F(void, __hipRegisterManagedVar,                                                                           \
    (void **binary, void **pointer, const void *initial, const char *name, size_t size, unsigned alignment))

#define SLUICE_DECLARE(result, name, parameters) result name parameters;
SLUICE_HIP_REGISTRATION_FUNCTIONS(SLUICE_DECLARE)
#undef SLUICE_DECLARE

} // namespace sluice::emulator::hip
