// Shared by these programs: HIP's own header, and how they end. A program returns 0 if its results are those
// of the host, 1 if they are not, and 3 if a call fails.
#pragma once

#include <hip/hip_runtime.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#ifdef __HIP_DEVICE_COMPILE__
// Functions that the barriers and fences of HIP 5's headers call, from a device library that came with HIP.
extern "C" __device__ __attribute__((weak)) void
__atomic_work_item_fence(__cl_mem_fence_flags, __memory_order order, __memory_scope scope) {
  const bool workgroup = scope == __memory_scope_work_group;
  if (workgroup && order == __memory_order_release)
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  else if (workgroup && order == __memory_order_acquire)
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
  else if (scope == __memory_scope_device)
    __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "agent");
  else
    __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "");
}
#endif

#define HIP(call)                                                                                            \
  do {                                                                                                       \
    const hipError_t hip_error = (call);                                                                     \
    if (hip_error != hipSuccess) {                                                                           \
      std::printf("%s:%d: %s: %s\n", __FILE__, __LINE__, #call, hipGetErrorName(hip_error));                 \
      std::exit(3);                                                                                          \
    }                                                                                                        \
  } while (false)

#define EXPECT(condition)                                                                                    \
  do {                                                                                                       \
    if (!(condition)) {                                                                                      \
      std::printf("%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                                    \
      std::exit(1);                                                                                          \
    }                                                                                                        \
  } while (false)

/// Device memory with the host's contents.
template <class T> T *to_device(const std::vector<T> &host) {
  T *device = nullptr;
  HIP(hipMalloc(reinterpret_cast<void **>(&device), host.size() * sizeof(T)));
  HIP(hipMemcpy(device, host.data(), host.size() * sizeof(T), hipMemcpyHostToDevice));
  return device;
}

template <class T> std::vector<T> to_host(const T *device, size_t count) {
  std::vector<T> host(count);
  HIP(hipMemcpy(host.data(), device, count * sizeof(T), hipMemcpyDeviceToHost));
  return host;
}

/// The same numbers in every run.
inline unsigned next_random(unsigned &state) {
  return state = state * 1664525u + 1013904223u;
}

inline std::vector<float> random_floats(size_t count, unsigned seed) {
  std::vector<float> values(count);
  for (float &value : values)
    value = float(next_random(seed) >> 8) / float(1 << 24) - 0.5f;
  return values;
}
