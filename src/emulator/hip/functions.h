//===- functions.h - the HIP functions that the emulator implements -------------------------------------===//
//
// One list: prototypes, the table of names and the tests are generated from it. All return hipError_t, except
// the two below that return text. Streams, events and modules are handles: a wrong one is an error, not a
// crash.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "emulator/hip/program_functions.h"
#include "emulator/hip/types.h"

namespace sluice::emulator::hip {

#define SLUICE_HIP_DEVICE_FUNCTIONS(F)                                                                       \
  F(hipInit, (unsigned flags))                                                                               \
  F(hipRuntimeGetVersion, (int *version))                                                                    \
  F(hipDriverGetVersion, (int *version))                                                                     \
  F(hipGetProcAddress, (const char *name, void **function, int version, uint64_t flags,                      \
                        hipDriverProcAddressQueryResult *status))                                            \
  F(hipGetDeviceCount, (int *count))                                                                         \
  F(hipSetDevice, (int device))                                                                              \
  F(hipGetDevice, (int *device))                                                                             \
  F(hipDeviceGet, (hipDevice_t * device, int ordinal))                                                       \
  F(hipDeviceGetName, (char *name, int size, hipDevice_t device))                                            \
  F(hipDeviceTotalMem, (size_t *bytes, hipDevice_t device))                                                  \
  F(hipDeviceGetAttribute, (int *value, int attribute, int device))                                          \
  F(hipGetDevicePropertiesR0600, (hipDeviceProp_t * properties, int device))                                 \
  F(hipDeviceCanAccessPeer, (int *can, int device, int peer))                                                \
  F(hipDeviceEnablePeerAccess, (int peer, unsigned flags))                                                   \
  F(hipDeviceDisablePeerAccess, (int peer))                                                                  \
  F(hipDeviceGetStreamPriorityRange, (int *least, int *greatest))                                            \
  F(hipDeviceGetLimit, (size_t *value, hipLimit_t limit))                                                    \
  F(hipDeviceSetLimit, (hipLimit_t limit, size_t value))                                                     \
  F(hipDeviceGetCacheConfig, (int *config))                                                                  \
  F(hipDeviceSetCacheConfig, (int config))                                                                   \
  F(hipDeviceGetSharedMemConfig, (int *config))                                                              \
  F(hipDeviceSetSharedMemConfig, (int config))                                                               \
  F(hipGetDeviceFlags, (unsigned *flags))                                                                    \
  F(hipSetDeviceFlags, (unsigned flags))                                                                     \
  F(hipDeviceGetPCIBusId, (char *id, int size, int device))                                                  \
  F(hipDeviceGetByPCIBusId, (int *device, const char *id))                                                   \
  F(hipDeviceGetUuid, (hipUUID * uuid, hipDevice_t device))                                                  \
  F(hipDeviceComputeCapability, (int *major, int *minor, hipDevice_t device))                                \
  F(hipDeviceReset, (void))                                                                                  \
  F(hipDeviceSynchronize, (void))                                                                            \
  F(hipGetLastError, (void))                                                                                 \
  F(hipPeekAtLastError, (void))                                                                              \
  F(hipExtGetLastError, (void))                                                                              \
  F(hipDrvGetErrorName, (hipError_t error, const char **name))                                               \
  F(hipDrvGetErrorString, (hipError_t error, const char **text))

#define SLUICE_HIP_MEMORY_FUNCTIONS(F)                                                                       \
  F(hipMalloc, (void **pointer, size_t size))                                                                \
  F(hipMallocPitch, (void **pointer, size_t *pitch, size_t width, size_t height))                            \
  F(hipMemAllocPitch,                                                                                        \
    (hipDeviceptr_t * pointer, size_t *pitch, size_t width, size_t height, unsigned element_bytes))          \
  F(hipMalloc3D, (hipPitchedPtr * memory, hipExtent extent))                                                 \
  F(hipExtMallocWithFlags, (void **pointer, size_t size, unsigned flags))                                    \
  F(hipFree, (void *pointer))                                                                                \
  F(hipMallocAsync, (void **pointer, size_t size, hipStream_t stream))                                       \
  F(hipFreeAsync, (void *pointer, hipStream_t stream))                                                       \
  F(hipMallocManaged, (void **pointer, size_t size, unsigned flags))                                         \
  F(hipMemPrefetchAsync, (const void *pointer, size_t size, int device, hipStream_t stream))                 \
  F(hipMemAdvise, (const void *pointer, size_t size, hipMemoryAdvise advice, int device))                    \
  F(hipHostMalloc, (void **pointer, size_t size, unsigned flags))                                            \
  F(hipHostAlloc, (void **pointer, size_t size, unsigned flags))                                             \
  F(hipExtHostAlloc, (void **pointer, size_t size, unsigned flags))                                          \
  F(hipMallocHost, (void **pointer, size_t size))                                                            \
  F(hipMemAllocHost, (void **pointer, size_t size))                                                          \
  F(hipHostGetFlags, (unsigned *flags, void *pointer))                                                       \
  F(hipFreeHost, (void *pointer))                                                                            \
  F(hipHostFree, (void *pointer))                                                                            \
  F(hipHostRegister, (void *pointer, size_t size, unsigned flags))                                           \
  F(hipHostUnregister, (void *pointer))                                                                      \
  F(hipHostGetDevicePointer, (void **device_pointer, void *host_pointer, unsigned flags))                    \
  F(hipMemGetInfo, (size_t *free_bytes, size_t *total_bytes))                                                \
  F(hipMemGetAddressRange, (hipDeviceptr_t * start, size_t *size, hipDeviceptr_t pointer))                   \
  F(hipMemPtrGetInfo, (void *pointer, size_t *size))                                                         \
  F(hipPointerGetAttributes, (hipPointerAttribute_t * attributes, const void *pointer))                      \
  F(hipMemcpy, (void *to, const void *from, size_t size, hipMemcpyKind kind))                                \
  F(hipMemcpyAsync, (void *to, const void *from, size_t size, hipMemcpyKind kind, hipStream_t stream))       \
  F(hipMemcpyWithStream, (void *to, const void *from, size_t size, hipMemcpyKind kind, hipStream_t stream))  \
  F(hipMemcpyPeer, (void *to, int to_device, const void *from, int from_device, size_t size))                \
  F(hipMemcpyPeerAsync,                                                                                      \
    (void *to, int to_device, const void *from, int from_device, size_t size, hipStream_t stream))           \
  F(hipMemcpy2D, (void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,              \
                  size_t height, hipMemcpyKind kind))                                                        \
  F(hipMemcpy2DAsync, (void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,         \
                       size_t height, hipMemcpyKind kind, hipStream_t stream))                               \
  F(hipMemcpy3D, (const hipMemcpy3DParms *parameters))                                                       \
  F(hipMemcpy3DAsync, (const hipMemcpy3DParms *parameters, hipStream_t stream))                              \
  F(hipMemset2D, (void *to, size_t pitch, int value, size_t width, size_t height))                           \
  F(hipMemset2DAsync, (void *to, size_t pitch, int value, size_t width, size_t height, hipStream_t stream))  \
  F(hipMemcpyHtoD, (hipDeviceptr_t to, void *from, size_t size))                                             \
  F(hipMemcpyDtoH, (void *to, hipDeviceptr_t from, size_t size))                                             \
  F(hipMemcpyDtoD, (hipDeviceptr_t to, hipDeviceptr_t from, size_t size))                                    \
  F(hipMemcpyHtoDAsync, (hipDeviceptr_t to, void *from, size_t size, hipStream_t stream))                    \
  F(hipMemcpyDtoHAsync, (void *to, hipDeviceptr_t from, size_t size, hipStream_t stream))                    \
  F(hipMemcpyDtoDAsync, (hipDeviceptr_t to, hipDeviceptr_t from, size_t size, hipStream_t stream))           \
  F(hipMemset, (void *to, int value, size_t size))                                                           \
  F(hipMemsetAsync, (void *to, int value, size_t size, hipStream_t stream))                                  \
  F(hipMemsetD8, (hipDeviceptr_t to, unsigned char value, size_t count))                                     \
  F(hipMemsetD16, (hipDeviceptr_t to, unsigned short value, size_t count))                                   \
  F(hipMemsetD32, (hipDeviceptr_t to, int value, size_t count))                                              \
  F(hipMemsetD8Async, (hipDeviceptr_t to, unsigned char value, size_t count, hipStream_t stream))            \
  F(hipMemsetD16Async, (hipDeviceptr_t to, unsigned short value, size_t count, hipStream_t stream))          \
  F(hipMemsetD32Async, (hipDeviceptr_t to, int value, size_t count, hipStream_t stream))

#define SLUICE_HIP_POOL_FUNCTIONS(F)                                                                         \
  F(hipDeviceGetDefaultMemPool, (hipMemPool_t * pool, int device))                                           \
  F(hipDeviceGetMemPool, (hipMemPool_t * pool, int device))                                                  \
  F(hipDeviceSetMemPool, (int device, hipMemPool_t pool))                                                    \
  F(hipMemPoolCreate, (hipMemPool_t * pool, const hipMemPoolProps *properties))                              \
  F(hipMemPoolDestroy, (hipMemPool_t pool))                                                                  \
  F(hipMemPoolTrimTo, (hipMemPool_t pool, size_t size))                                                      \
  F(hipMemPoolSetAttribute, (hipMemPool_t pool, hipMemPoolAttr attribute, void *value))                      \
  F(hipMemPoolGetAttribute, (hipMemPool_t pool, hipMemPoolAttr attribute, void *value))                      \
  F(hipMallocFromPoolAsync, (void **pointer, size_t size, hipMemPool_t pool, hipStream_t stream))

#define SLUICE_HIP_STREAM_FUNCTIONS(F)                                                                       \
  F(hipStreamCreate, (hipStream_t * stream))                                                                 \
  F(hipStreamCreateWithFlags, (hipStream_t * stream, unsigned flags))                                        \
  F(hipStreamCreateWithPriority, (hipStream_t * stream, unsigned flags, int priority))                       \
  F(hipStreamDestroy, (hipStream_t stream))                                                                  \
  F(hipStreamSynchronize, (hipStream_t stream))                                                              \
  F(hipStreamQuery, (hipStream_t stream))                                                                    \
  F(hipStreamWaitEvent, (hipStream_t stream, hipEvent_t event, unsigned flags))                              \
  F(hipStreamGetDevice, (hipStream_t stream, hipDevice_t * device))                                          \
  F(hipStreamGetFlags, (hipStream_t stream, unsigned *flags))                                                \
  F(hipStreamGetPriority, (hipStream_t stream, int *priority))                                               \
  F(hipStreamAddCallback, (hipStream_t stream, hipStreamCallback_t callback, void *user, unsigned flags))    \
  F(hipLaunchHostFunc, (hipStream_t stream, hipHostFn_t function, void *user))                               \
  F(hipEventCreate, (hipEvent_t * event))                                                                    \
  F(hipEventCreateWithFlags, (hipEvent_t * event, unsigned flags))                                           \
  F(hipEventDestroy, (hipEvent_t event))                                                                     \
  F(hipEventRecord, (hipEvent_t event, hipStream_t stream))                                                  \
  F(hipEventRecordWithFlags, (hipEvent_t event, hipStream_t stream, unsigned flags))                         \
  F(hipEventQuery, (hipEvent_t event))                                                                       \
  F(hipEventSynchronize, (hipEvent_t event))                                                                 \
  F(hipEventElapsedTime, (float *milliseconds, hipEvent_t start, hipEvent_t stop))

#define SLUICE_HIP_MODULE_FUNCTIONS(F)                                                                       \
  F(hipModuleLoad, (hipModule_t * module, const char *path))                                                 \
  F(hipModuleLoadData, (hipModule_t * module, const void *image))                                            \
  F(hipModuleLoadFatBinary, (hipModule_t * module, const void *image))                                       \
  F(hipModuleLoadDataEx,                                                                                     \
    (hipModule_t * module, const void *image, unsigned option_count, int *options, void **option_values))    \
  F(hipModuleUnload, (hipModule_t module))                                                                   \
  F(hipModuleGetFunction, (hipFunction_t * function, hipModule_t module, const char *name))                  \
  F(hipModuleGetFunctionCount, (unsigned *count, hipModule_t module))                                        \
  F(hipModuleGetGlobal, (hipDeviceptr_t * pointer, size_t *size, hipModule_t module, const char *name))      \
  F(hipModuleLaunchKernel,                                                                                   \
    (hipFunction_t function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,            \
     unsigned block_y, unsigned block_z, unsigned dynamic_lds_bytes, hipStream_t stream, void **parameters,  \
     void **extra))                                                                                          \
  F(hipModuleLaunchCooperativeKernel,                                                                        \
    (hipFunction_t function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,            \
     unsigned block_y, unsigned block_z, unsigned dynamic_lds_bytes, hipStream_t stream, void **parameters)) \
  F(hipExtModuleLaunchKernel,                                                                                \
    (hipFunction_t function, unsigned items_x, unsigned items_y, unsigned items_z, unsigned block_x,         \
     unsigned block_y, unsigned block_z, size_t dynamic_lds_bytes, hipStream_t stream, void **parameters,    \
     void **extra, hipEvent_t start, hipEvent_t stop, unsigned flags))                                       \
  F(hipFuncGetAttribute, (int *value, hipFunction_attribute attribute, hipFunction_t function))              \
  F(hipModuleOccupancyMaxActiveBlocksPerMultiprocessor,                                                      \
    (int *blocks, hipFunction_t function, int block_size, size_t dynamic_lds_bytes))                         \
  F(hipModuleOccupancyMaxActiveBlocksPerMultiprocessorWithFlags,                                             \
    (int *blocks, hipFunction_t function, int block_size, size_t dynamic_lds_bytes, unsigned flags))         \
  F(hipModuleOccupancyMaxPotentialBlockSize,                                                                 \
    (int *grid_size, int *block_size, hipFunction_t function, size_t dynamic_lds_bytes, int largest_block))  \
  F(hipModuleOccupancyMaxPotentialBlockSizeWithFlags,                                                        \
    (int *grid_size, int *block_size, hipFunction_t function, size_t dynamic_lds_bytes, int largest_block,   \
     unsigned flags))

#define SLUICE_HIP_GRAPH_FUNCTIONS(F)                                                                        \
  F(hipStreamBeginCapture, (hipStream_t stream, hipStreamCaptureMode mode))                                  \
  F(hipStreamEndCapture, (hipStream_t stream, hipGraph_t * graph))                                           \
  F(hipStreamIsCapturing, (hipStream_t stream, hipStreamCaptureStatus * status))                             \
  F(hipStreamGetCaptureInfo, (hipStream_t stream, hipStreamCaptureStatus * status, unsigned long long *id))  \
  F(hipStreamGetCaptureInfo_v2,                                                                              \
    (hipStream_t stream, hipStreamCaptureStatus * status, unsigned long long *id, hipGraph_t *graph,         \
     const hipGraphNode_t **dependencies, size_t *dependency_count))                                         \
  F(hipStreamUpdateCaptureDependencies,                                                                      \
    (hipStream_t stream, hipGraphNode_t * dependencies, size_t dependency_count, unsigned flags))            \
  F(hipThreadExchangeStreamCaptureMode, (hipStreamCaptureMode * mode))                                       \
  F(hipGraphCreate, (hipGraph_t * graph, unsigned flags))                                                    \
  F(hipGraphDestroy, (hipGraph_t graph))                                                                     \
  F(hipGraphAddKernelNode, (hipGraphNode_t * node, hipGraph_t graph, const hipGraphNode_t *dependencies,     \
                            size_t dependency_count, const hipKernelNodeParams *parameters))                 \
  F(hipGraphAddMemcpyNode, (hipGraphNode_t * node, hipGraph_t graph, const hipGraphNode_t *dependencies,     \
                            size_t dependency_count, const hipMemcpy3DParms *parameters))                    \
  F(hipGraphAddMemcpyNode1D,                                                                                 \
    (hipGraphNode_t * node, hipGraph_t graph, const hipGraphNode_t *dependencies, size_t dependency_count,   \
     void *to, const void *from, size_t size, hipMemcpyKind kind))                                           \
  F(hipGraphAddMemsetNode, (hipGraphNode_t * node, hipGraph_t graph, const hipGraphNode_t *dependencies,     \
                            size_t dependency_count, const hipMemsetParams *parameters))                     \
  F(hipGraphAddHostNode, (hipGraphNode_t * node, hipGraph_t graph, const hipGraphNode_t *dependencies,       \
                          size_t dependency_count, const hipHostNodeParams *parameters))                     \
  F(hipGraphAddChildGraphNode, (hipGraphNode_t * node, hipGraph_t graph, const hipGraphNode_t *dependencies, \
                                size_t dependency_count, hipGraph_t child))                                  \
  F(hipGraphAddEmptyNode,                                                                                    \
    (hipGraphNode_t * node, hipGraph_t graph, const hipGraphNode_t *dependencies, size_t dependency_count))  \
  F(hipGraphAddEventRecordNode,                                                                              \
    (hipGraphNode_t * node, hipGraph_t graph, const hipGraphNode_t *dependencies, size_t dependency_count,   \
     hipEvent_t event))                                                                                      \
  F(hipGraphAddEventWaitNode, (hipGraphNode_t * node, hipGraph_t graph, const hipGraphNode_t *dependencies,  \
                               size_t dependency_count, hipEvent_t event))                                   \
  F(hipGraphAddDependencies,                                                                                 \
    (hipGraph_t graph, const hipGraphNode_t *from, const hipGraphNode_t *to, size_t count))                  \
  F(hipGraphRemoveDependencies,                                                                              \
    (hipGraph_t graph, const hipGraphNode_t *from, const hipGraphNode_t *to, size_t count))                  \
  F(hipGraphDestroyNode, (hipGraphNode_t node))                                                              \
  F(hipGraphClone, (hipGraph_t * clone, hipGraph_t graph))                                                   \
  F(hipGraphNodeFindInClone, (hipGraphNode_t * node, hipGraphNode_t original, hipGraph_t clone))             \
  F(hipGraphGetNodes, (hipGraph_t graph, hipGraphNode_t * nodes, size_t *count))                             \
  F(hipGraphGetRootNodes, (hipGraph_t graph, hipGraphNode_t * nodes, size_t *count))                         \
  F(hipGraphGetEdges, (hipGraph_t graph, hipGraphNode_t * from, hipGraphNode_t * to, size_t *count))         \
  F(hipGraphNodeGetType, (hipGraphNode_t node, hipGraphNodeType * type))                                     \
  F(hipGraphNodeGetDependencies, (hipGraphNode_t node, hipGraphNode_t * dependencies, size_t *count))        \
  F(hipGraphNodeGetDependentNodes, (hipGraphNode_t node, hipGraphNode_t * dependents, size_t *count))        \
  F(hipGraphKernelNodeSetParams, (hipGraphNode_t node, const hipKernelNodeParams *parameters))               \
  F(hipGraphMemcpyNodeSetParams, (hipGraphNode_t node, const hipMemcpy3DParms *parameters))                  \
  F(hipGraphMemcpyNodeSetParams1D,                                                                           \
    (hipGraphNode_t node, void *to, const void *from, size_t size, hipMemcpyKind kind))                      \
  F(hipGraphMemsetNodeSetParams, (hipGraphNode_t node, const hipMemsetParams *parameters))                   \
  F(hipGraphHostNodeSetParams, (hipGraphNode_t node, const hipHostNodeParams *parameters))                   \
  F(hipGraphInstantiate,                                                                                     \
    (hipGraphExec_t * exec, hipGraph_t graph, hipGraphNode_t * error_node, char *log, size_t log_bytes))     \
  F(hipGraphInstantiateWithFlags, (hipGraphExec_t * exec, hipGraph_t graph, unsigned long long flags))       \
  F(hipGraphLaunch, (hipGraphExec_t exec, hipStream_t stream))                                               \
  F(hipGraphUpload, (hipGraphExec_t exec, hipStream_t stream))                                               \
  F(hipGraphExecDestroy, (hipGraphExec_t exec))                                                              \
  F(hipGraphExecUpdate,                                                                                      \
    (hipGraphExec_t exec, hipGraph_t graph, hipGraphNode_t * error_node, hipGraphExecUpdateResult * result)) \
  F(hipGraphExecKernelNodeSetParams,                                                                         \
    (hipGraphExec_t exec, hipGraphNode_t node, const hipKernelNodeParams *parameters))                       \
  F(hipGraphExecMemcpyNodeSetParams,                                                                         \
    (hipGraphExec_t exec, hipGraphNode_t node, const hipMemcpy3DParms *parameters))                          \
  F(hipGraphExecMemcpyNodeSetParams1D,                                                                       \
    (hipGraphExec_t exec, hipGraphNode_t node, void *to, const void *from, size_t size, hipMemcpyKind kind)) \
  F(hipGraphExecMemsetNodeSetParams,                                                                         \
    (hipGraphExec_t exec, hipGraphNode_t node, const hipMemsetParams *parameters))                           \
  F(hipGraphExecHostNodeSetParams,                                                                           \
    (hipGraphExec_t exec, hipGraphNode_t node, const hipHostNodeParams *parameters))

#define SLUICE_HIP_FUNCTIONS(F)                                                                              \
  SLUICE_HIP_DEVICE_FUNCTIONS(F)                                                                             \
  SLUICE_HIP_MEMORY_FUNCTIONS(F)                                                                             \
  SLUICE_HIP_POOL_FUNCTIONS(F)                                                                               \
  SLUICE_HIP_STREAM_FUNCTIONS(F)                                                                             \
  SLUICE_HIP_MODULE_FUNCTIONS(F)                                                                             \
  SLUICE_HIP_PROGRAM_FUNCTIONS(F)                                                                            \
  SLUICE_HIP_GRAPH_FUNCTIONS(F)

#define SLUICE_DECLARE(name, parameters) hipError_t name parameters;
SLUICE_HIP_FUNCTIONS(SLUICE_DECLARE)
#undef SLUICE_DECLARE

const char *hipGetErrorName(hipError_t error);
const char *hipGetErrorString(hipError_t error);

} // namespace sluice::emulator::hip
