//===- hip_table.h - the HIP entry points the library calls ---------------------------------------------===//
//
// Bound by name through a resolver, so that a real HIP runtime, the emulator and a caller's own table look
// the same. The prototypes are HIP's, written out here: no ROCm header is needed, and none can disagree with
// another's.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace sluice::runtime {

using HipError = int; // hipError_t
inline constexpr HipError hip_success = 0;
inline constexpr HipError hip_no_device = 100;
inline constexpr HipError hip_invalid_device = 101;
inline constexpr HipError hip_no_binary_for_gpu = 209;

// hipDeviceAttribute_t; its values are append-only.
inline constexpr int hip_attribute_compute_units = 63;
inline constexpr int hip_attribute_lds_bytes = 74;
inline constexpr int hip_attribute_wave_size = 87;

// The `extra` array of hipModuleLaunchKernel.
inline constexpr uintptr_t hip_launch_buffer_pointer = 1;
inline constexpr uintptr_t hip_launch_buffer_size = 2;
inline constexpr uintptr_t hip_launch_end = 3;

inline constexpr int hip_capture_status_none = 0;

// ENTRY(name, parameters): all return hipError_t.
#define SLUICE_HIP_REQUIRED(ENTRY)                                                                           \
  ENTRY(hipInit, (unsigned flags))                                                                           \
  ENTRY(hipGetDeviceCount, (int *count))                                                                     \
  ENTRY(hipGetDevice, (int *device))                                                                         \
  ENTRY(hipSetDevice, (int device))                                                                          \
  ENTRY(hipDeviceGetAttribute, (int *value, int attribute, int device))                                      \
  ENTRY(hipModuleLoadData, (void **module, const void *image))                                               \
  ENTRY(hipModuleUnload, (void *module))                                                                     \
  ENTRY(hipModuleGetFunction, (void **function, void *module, const char *name))                             \
  ENTRY(hipModuleLaunchKernel, (void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z,           \
                                unsigned block_x, unsigned block_y, unsigned block_z,                        \
                                unsigned dynamic_lds_bytes, void *stream, void **parameters, void **extra))  \
  ENTRY(hipStreamWaitEvent, (void *stream, void *event, unsigned flags))                                     \
  ENTRY(hipStreamIsCapturing, (void *stream, int *status))                                                   \
  ENTRY(hipEventRecord, (void *event, void *stream))

#define SLUICE_HIP_OPTIONAL(ENTRY)                                                                           \
  ENTRY(hipRuntimeGetVersion, (int *version))                                                                \
  ENTRY(hipDeviceGetName, (char *name, int bytes, int device))                                               \
  ENTRY(hipGetDevicePropertiesR0600, (void *properties, int device))                                         \
  ENTRY(hipGetDevicePropertiesR0000, (void *properties, int device))                                         \
  ENTRY(hipGetDeviceProperties, (void *properties, int device))

using HipResolver = void *(*)(const char *name, void *user);

struct HipTable {
#define SLUICE_ENTRY(name, parameters) HipError(*name) parameters = nullptr;
  SLUICE_HIP_REQUIRED(SLUICE_ENTRY)
  SLUICE_HIP_OPTIONAL(SLUICE_ENTRY)
#undef SLUICE_ENTRY
  const char *(*hipGetErrorName)(HipError error) = nullptr;

  HipResolver resolver = nullptr;
  void *user = nullptr;
};

/// Throws support::Failure (no_device) naming the first required entry point that is missing; `origin` says
/// where it is missing.
HipTable bind_hip(HipResolver resolver, void *user, std::string_view origin);

/// Throws support::Failure unless `error` is success: wrong_arch for a module without code for the device,
/// else hip. `call` is the entry point's name.
void check_hip(const HipTable &hip, HipError error, std::string_view call, std::string_view field = {});

} // namespace sluice::runtime
