// The part of HIP's device side that the programs here need, over the compiler's builtins.
#pragma once

#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(most) __attribute__((launch_bounds(most)))
#define KERNEL(most) extern "C" __global__ __launch_bounds__(most) void

using uint8 = unsigned char;
using uint16 = unsigned short;
using uint32 = unsigned;
using uint64 = unsigned long;
using int64 = long;

#define COORDINATES(name, builtin)                                                                           \
  struct name##_t {                                                                                          \
    static __device__ uint32 get_x() { return builtin##_x(); }                                               \
    static __device__ uint32 get_y() { return builtin##_y(); }                                               \
    static __device__ uint32 get_z() { return builtin##_z(); }                                               \
    __declspec(property(get = get_x)) uint32 x;                                                              \
    __declspec(property(get = get_y)) uint32 y;                                                              \
    __declspec(property(get = get_z)) uint32 z;                                                              \
  };                                                                                                         \
  extern const __device__ __attribute__((weak)) name##_t name;
COORDINATES(threadIdx, __builtin_amdgcn_workitem_id)
COORDINATES(blockIdx, __builtin_amdgcn_workgroup_id)
COORDINATES(blockDim, __builtin_amdgcn_workgroup_size)

struct gridDim_t {
  static __device__ uint32 get_x() {
    return __builtin_amdgcn_grid_size_x() / __builtin_amdgcn_workgroup_size_x();
  }
  static __device__ uint32 get_y() {
    return __builtin_amdgcn_grid_size_y() / __builtin_amdgcn_workgroup_size_y();
  }
  static __device__ uint32 get_z() {
    return __builtin_amdgcn_grid_size_z() / __builtin_amdgcn_workgroup_size_z();
  }
  __declspec(property(get = get_x)) uint32 x;
  __declspec(property(get = get_y)) uint32 y;
  __declspec(property(get = get_z)) uint32 z;
};
extern const __device__ __attribute__((weak)) gridDim_t gridDim;

inline __device__ void __syncthreads() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
inline __device__ void __threadfence() {
  __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "agent");
}

template <class T> __device__ T atomicAdd(T *at, T value) {
  return __hip_atomic_fetch_add(at, value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}
template <class T> __device__ T atomicMax(T *at, T value) {
  return __hip_atomic_fetch_max(at, value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}
template <class T> __device__ T atomicCAS(T *at, T expected, T value) {
  __hip_atomic_compare_exchange_strong(at, &expected, value, __ATOMIC_RELAXED, __ATOMIC_RELAXED,
                                       __HIP_MEMORY_SCOPE_AGENT);
  return expected;
}

inline __device__ uint32 __lane_id() {
  return __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0));
}
inline __device__ int __shfl(int value, int lane) {
  return __builtin_amdgcn_ds_bpermute(lane * 4, value);
}
inline __device__ float __shfl_xor(float value, int mask) {
  return __builtin_bit_cast(float, __shfl(__builtin_bit_cast(int, value), int(__lane_id()) ^ mask));
}
