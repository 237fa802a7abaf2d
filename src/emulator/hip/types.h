//===- types.h - HIP's types and numbers ----------------------------------------------------------------===//
//
// The definitions of HIP's headers that the functions here need, written out so that building needs no ROCm
// header. Names are HIP's; layouts and values are checked where HIP fixes them.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <cstddef>
#include <cstdint>

namespace sluice::emulator::hip {

// ERROR(name, number, text)
#define SLUICE_HIP_ERRORS(ERROR)                                                                             \
  ERROR(hipSuccess, 0, "no error")                                                                           \
  ERROR(hipErrorInvalidValue, 1, "invalid argument")                                                         \
  ERROR(hipErrorOutOfMemory, 2, "out of memory")                                                             \
  ERROR(hipErrorNotInitialized, 3, "initialization error")                                                   \
  ERROR(hipErrorInvalidConfiguration, 9, "invalid configuration argument")                                   \
  ERROR(hipErrorInvalidPitchValue, 12, "invalid pitch argument")                                             \
  ERROR(hipErrorInvalidSymbol, 13, "invalid device symbol")                                                  \
  ERROR(hipErrorInvalidDevicePointer, 17, "invalid device pointer")                                          \
  ERROR(hipErrorInvalidMemcpyDirection, 21, "invalid copy direction for memcpy")                             \
  ERROR(hipErrorMissingConfiguration, 52, "__global__ function call is not configured")                      \
  ERROR(hipErrorInvalidDeviceFunction, 98, "invalid device function")                                        \
  ERROR(hipErrorNoDevice, 100, "no ROCm-capable device is detected")                                         \
  ERROR(hipErrorInvalidDevice, 101, "invalid device ordinal")                                                \
  ERROR(hipErrorInvalidImage, 200, "device kernel image is invalid")                                         \
  ERROR(hipErrorNoBinaryForGpu, 209, "no kernel image is available for execution on the device")             \
  ERROR(hipErrorUnsupportedLimit, 215, "limit is not supported on this architecture")                        \
  ERROR(hipErrorInvalidKernelFile, 218, "invalid kernel file")                                               \
  ERROR(hipErrorFileNotFound, 301, "file not found")                                                         \
  ERROR(hipErrorInvalidHandle, 400, "invalid resource handle")                                               \
  ERROR(hipErrorIllegalState, 401, "the operation cannot be performed in the present state")                 \
  ERROR(hipErrorNotFound, 500, "named symbol not found")                                                     \
  ERROR(hipErrorNotReady, 600, "device not ready")                                                           \
  ERROR(hipErrorIllegalAddress, 700, "an illegal memory access was encountered")                             \
  ERROR(hipErrorPeerAccessAlreadyEnabled, 704, "peer access is already enabled")                             \
  ERROR(hipErrorPeerAccessNotEnabled, 705, "peer access has not been enabled")                               \
  ERROR(hipErrorHostMemoryAlreadyRegistered, 712,                                                            \
        "part or all of the requested memory range is already mapped")                                       \
  ERROR(hipErrorHostMemoryNotRegistered, 713, "pointer does not correspond to a registered memory region")   \
  ERROR(hipErrorLaunchFailure, 719, "unspecified launch failure")                                            \
  ERROR(hipErrorCooperativeLaunchTooLarge, 720, "too many blocks in cooperative launch")                     \
  ERROR(hipErrorNotSupported, 801, "operation not supported")                                                \
  ERROR(hipErrorStreamCaptureUnsupported, 900, "operation not permitted when stream is capturing")           \
  ERROR(hipErrorStreamCaptureInvalidated, 901, "operation failed due to a previous error during capture")    \
  ERROR(hipErrorStreamCaptureMerge, 902, "operation would result in a merge of separate capture sequences")  \
  ERROR(hipErrorStreamCaptureUnmatched, 903, "capture was not ended in the same stream as it began")         \
  ERROR(hipErrorStreamCaptureUnjoined, 904, "capturing stream has unjoined work")                            \
  ERROR(hipErrorStreamCaptureIsolation, 905, "dependency created on uncaptured work in another stream")      \
  ERROR(hipErrorStreamCaptureImplicit, 906,                                                                  \
        "operation would make the legacy stream depend on a capturing blocking stream")                      \
  ERROR(hipErrorCapturedEvent, 907,                                                                          \
        "operation not permitted on an event last recorded in a capturing stream")                           \
  ERROR(hipErrorStreamCaptureWrongThread, 908,                                                               \
        "attempt to terminate a thread-local capture sequence from another thread")                          \
  ERROR(hipErrorGraphExecUpdateFailure, 910,                                                                 \
        "the graph update was not performed because it included changes which violated constraints "         \
        "specific to "                                                                                       \
        "instantiated graph update")                                                                         \
  ERROR(hipErrorUnknown, 999, "unknown error")

enum hipError_t : int32_t {
#define SLUICE_ERROR(name, number, text) name = number,
  SLUICE_HIP_ERRORS(SLUICE_ERROR)
#undef SLUICE_ERROR
};

using hipDevice_t = int;
struct hipUUID {
  char bytes[16];
};
using hipDeviceptr_t = void *;
using hipStream_t = struct StreamHandle *;
using hipEvent_t = struct EventHandle *;
using hipModule_t = struct ModuleHandle *;
using hipFunction_t = struct FunctionHandle *;
using hipGraph_t = struct Graph *;
using hipGraphNode_t = struct GraphNode *;
using hipGraphExec_t = struct GraphExecHandle *;
using hipMemPool_t = struct MemPoolHandle *;
using hipStreamCallback_t = void (*)(hipStream_t stream, hipError_t status, void *user);
using hipHostFn_t = void (*)(void *user);

// Stream handles that are not objects: the null stream's other name, and each thread's own stream.
inline constexpr uintptr_t stream_legacy = 1;
inline constexpr uintptr_t stream_per_thread = 2;
inline constexpr unsigned hipStreamNonBlocking = 1;

inline constexpr unsigned hipEventBlockingSync = 1;
inline constexpr unsigned hipEventDisableTiming = 2;
inline constexpr unsigned hipEventInterprocess = 4;
/// Release scopes, which can be ignored: hipEventDisableSystemFence, hipEventReleaseToDevice and
/// hipEventReleaseToSystem.
inline constexpr unsigned event_release_bits = 0xe0000000;
inline constexpr unsigned hipEventRecordExternal = 1;
inline constexpr unsigned hipEventWaitExternal = 1;

enum hipMemcpyKind : int32_t {
  hipMemcpyHostToHost = 0,
  hipMemcpyHostToDevice = 1,
  hipMemcpyDeviceToHost = 2,
  hipMemcpyDeviceToDevice = 3,
  hipMemcpyDefault = 4,
};

enum hipMemoryType : int32_t {
  hipMemoryTypeUnregistered = 0,
  hipMemoryTypeHost = 1,
  hipMemoryTypeDevice = 2,
  hipMemoryTypeManaged = 3,
};

inline constexpr unsigned hipMemAttachGlobal = 1;
inline constexpr unsigned hipMemAttachHost = 2;
inline constexpr int hipCpuDeviceId = -1;

enum hipMemoryAdvise : int32_t {
  hipMemAdviseSetReadMostly = 1,
  hipMemAdviseUnsetAccessedBy = 6,
  hipMemAdviseSetCoarseGrain = 100,
  hipMemAdviseUnsetCoarseGrain = 101,
};

enum hipMemPoolAttr : int32_t {
  hipMemPoolReuseFollowEventDependencies = 1,
  hipMemPoolReuseAllowOpportunistic = 2,
  hipMemPoolReuseAllowInternalDependencies = 3,
  hipMemPoolAttrReleaseThreshold = 4,
  hipMemPoolAttrReservedMemCurrent = 5,
  hipMemPoolAttrReservedMemHigh = 6,
  hipMemPoolAttrUsedMemCurrent = 7,
  hipMemPoolAttrUsedMemHigh = 8,
};

inline constexpr int hipMemAllocationTypePinned = 1;
inline constexpr int hipMemLocationTypeDevice = 1;
struct hipMemLocation {
  int type;
  int id;
};
struct hipMemPoolProps {
  int allocType;
  int handleTypes;
  hipMemLocation location;
  void *win32SecurityAttributes;
  size_t maxSize;
  unsigned char reserved[56];
};
static_assert(sizeof(hipMemPoolProps) == 88);

struct hipPointerAttribute_t {
  hipMemoryType type;
  int device;
  void *devicePointer;
  void *hostPointer;
  int isManaged;
  unsigned allocationFlags;
};

enum hipFunction_attribute : int32_t {
  HIP_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 0,
  HIP_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES = 1,
  HIP_FUNC_ATTRIBUTE_CONST_SIZE_BYTES = 2,
  HIP_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES = 3,
  HIP_FUNC_ATTRIBUTE_NUM_REGS = 4,
  HIP_FUNC_ATTRIBUTE_PTX_VERSION = 5,
  HIP_FUNC_ATTRIBUTE_BINARY_VERSION = 6,
  HIP_FUNC_ATTRIBUTE_CACHE_MODE_CA = 7,
  HIP_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8,
  HIP_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT = 9,
};

enum hipLimit_t : uint32_t {
  hipLimitStackSize = 0,
  hipLimitPrintfFifoSize = 1,
  hipLimitMallocHeapSize = 2,
};

enum hipStreamCaptureStatus : int32_t {
  hipStreamCaptureStatusNone = 0,
  hipStreamCaptureStatusActive = 1,
  hipStreamCaptureStatusInvalidated = 2,
};

enum hipStreamCaptureMode : int32_t {
  hipStreamCaptureModeGlobal = 0,
  hipStreamCaptureModeThreadLocal = 1,
  hipStreamCaptureModeRelaxed = 2,
};

enum hipStreamUpdateCaptureDependenciesFlags : uint32_t {
  hipStreamAddCaptureDependencies = 0,
  hipStreamSetCaptureDependencies = 1,
};

enum hipDriverProcAddressQueryResult : int32_t {
  HIP_GET_PROC_ADDRESS_SUCCESS = 0,
  HIP_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND = 1,
  HIP_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT = 2,
};

enum hipGraphNodeType : int32_t {
  hipGraphNodeTypeKernel = 0,
  hipGraphNodeTypeMemcpy = 1,
  hipGraphNodeTypeMemset = 2,
  hipGraphNodeTypeHost = 3,
  hipGraphNodeTypeGraph = 4,
  hipGraphNodeTypeEmpty = 5,
  hipGraphNodeTypeWaitEvent = 6,
  hipGraphNodeTypeEventRecord = 7,
};

enum hipGraphExecUpdateResult : int32_t {
  hipGraphExecUpdateSuccess = 0,
  hipGraphExecUpdateError = 1,
  hipGraphExecUpdateErrorTopologyChanged = 2,
  hipGraphExecUpdateErrorNodeTypeChanged = 3,
};

struct dim3 {
  uint32_t x = 1;
  uint32_t y = 1;
  uint32_t z = 1;
};

struct hipKernelNodeParams {
  dim3 blockDim;
  void **extra;
  void *func; // a kernel's host address, or a hipFunction_t
  dim3 gridDim;
  void **kernelParams;
  unsigned sharedMemBytes;
};
static_assert(sizeof(hipKernelNodeParams) == 64);

struct hipMemsetParams {
  void *dst;
  unsigned elementSize;
  size_t height;
  size_t pitch;
  unsigned value;
  size_t width; // in elements
};
static_assert(sizeof(hipMemsetParams) == 48);

struct hipHostNodeParams {
  hipHostFn_t fn;
  void *userData;
};

struct hipPos {
  size_t x, y, z;
};
struct hipExtent {
  size_t width, height, depth; // without arrays, the width is in bytes
};
struct hipPitchedPtr {
  void *ptr;
  size_t pitch, xsize, ysize;
};
struct hipMemcpy3DParms {
  void *srcArray;
  hipPos srcPos;
  hipPitchedPtr srcPtr;
  void *dstArray;
  hipPos dstPos;
  hipPitchedPtr dstPtr;
  hipExtent extent;
  hipMemcpyKind kind;
};
static_assert(sizeof(hipMemcpy3DParms) == 160);

// The `extra` array of hipModuleLaunchKernel.
inline constexpr uintptr_t launch_buffer_pointer = 1;
inline constexpr uintptr_t launch_buffer_size = 2;
inline constexpr uintptr_t launch_end = 3;

/// hipDeviceProp_tR0600.
struct hipDeviceProp_t {
  char name[256];
  char uuid[16];
  char luid[8];
  unsigned luidDeviceNodeMask;
  size_t totalGlobalMem;
  size_t sharedMemPerBlock;
  int regsPerBlock;
  int warpSize;
  size_t memPitch;
  int maxThreadsPerBlock;
  int maxThreadsDim[3];
  int maxGridSize[3];
  int clockRate;
  size_t totalConstMem;
  int major;
  int minor;
  size_t textureAlignment;
  size_t texturePitchAlignment;
  int deviceOverlap;
  int multiProcessorCount;
  int kernelExecTimeoutEnabled;
  int integrated;
  int canMapHostMemory;
  int computeMode;
  int textures_and_surfaces[40];
  size_t surfaceAlignment;
  int concurrentKernels;
  int ECCEnabled;
  int pciBusID;
  int pciDeviceID;
  int pciDomainID;
  int tccDriver;
  int asyncEngineCount;
  int unifiedAddressing;
  int memoryClockRate;
  int memoryBusWidth;
  int l2CacheSize;
  int persistingL2CacheMaxSize;
  int maxThreadsPerMultiProcessor;
  int streamPrioritiesSupported;
  int globalL1CacheSupported;
  int localL1CacheSupported;
  size_t sharedMemPerMultiprocessor;
  int regsPerMultiprocessor;
  int managedMemory;
  int isMultiGpuBoard;
  int multiGpuBoardGroupID;
  int hostNativeAtomicSupported;
  int singleToDoublePrecisionPerfRatio;
  int pageableMemoryAccess;
  int concurrentManagedAccess;
  int computePreemptionSupported;
  int canUseHostPointerForRegisteredMem;
  int cooperativeLaunch;
  int cooperativeMultiDeviceLaunch;
  size_t sharedMemPerBlockOptin;
  int pageableMemoryAccessUsesHostPageTables;
  int directManagedMemAccessFromHost;
  int maxBlocksPerMultiProcessor;
  int accessPolicyMaxWindowSize;
  size_t reservedSharedMemPerBlock;
  int hostRegisterSupported;
  int sparseHipArraySupported;
  int hostRegisterReadOnlySupported;
  int timelineSemaphoreInteropSupported;
  int memoryPoolsSupported;
  int gpuDirectRDMASupported;
  unsigned gpuDirectRDMAFlushWritesOptions;
  int gpuDirectRDMAWritesOrdering;
  unsigned memoryPoolSupportedHandleTypes;
  int deferredMappingHipArraySupported;
  int ipcEventSupported;
  int clusterLaunch;
  int unifiedFunctionPointers;
  int reserved[63];
  int hipReserved[32];
  char gcnArchName[256];
  size_t maxSharedMemoryPerMultiProcessor;
  int clockInstructionRate;
  unsigned arch;
  unsigned *hdpMemFlushCntl;
  unsigned *hdpRegFlushCntl;
  int cooperativeMultiDeviceUnmatched[4];
  int isLargeBar;
  int asicRevision;
};
static_assert(sizeof(hipDeviceProp_t) == 1472);
static_assert(offsetof(hipDeviceProp_t, totalGlobalMem) == 288);
static_assert(offsetof(hipDeviceProp_t, sharedMemPerBlock) == 296);
static_assert(offsetof(hipDeviceProp_t, warpSize) == 308);
static_assert(offsetof(hipDeviceProp_t, multiProcessorCount) == 388);
static_assert(offsetof(hipDeviceProp_t, l2CacheSize) == 616);
static_assert(offsetof(hipDeviceProp_t, gcnArchName) == 1160);
static_assert(offsetof(hipDeviceProp_t, asicRevision) == 1468);

} // namespace sluice::emulator::hip
