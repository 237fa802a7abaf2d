// Kernels for the fidelity note of `sluice-emu exec`. The arguments name those to launch, in their order; all
// of them work on the same memory.
#include "program.h"

#include <algorithm>
#include <cstring>
#include <iterator>

__global__ void exact(float *x) {
  const int i = int(threadIdx.x);
  x[i] = fmaf(x[i], 0.5f, 1.0f);
  if (x[i] > 2.0f) x[i ^ 1] += 1.0f;
}

__global__ void value(float *x) {
  x[threadIdx.x] = __builtin_amdgcn_exp2f(x[threadIdx.x]);
}

__global__ void lanes(float *x) {
  if (__builtin_amdgcn_exp2f(x[threadIdx.x]) > 1.5f) x[threadIdx.x + 64] = 0.0f;
}

__global__ void wave(float *x) {
  const float first = __builtin_amdgcn_exp2f(x[0]);
  if (__builtin_amdgcn_readfirstlane(__float_as_int(first)) > 0x3f000000) {
    __builtin_amdgcn_s_sleep(1);
    x[threadIdx.x] = 3.0f;
  }
}

__global__ void address(float *x) {
  const int at = int(__builtin_amdgcn_exp2f(x[threadIdx.x]));
  x[at + 64] = 1.0f;
}

__global__ void in_lds(float *x) {
  __shared__ float values[64];
  values[threadIdx.x] = __builtin_amdgcn_exp2f(x[threadIdx.x]);
  __syncthreads();
  x[int(values[63 - threadIdx.x]) + 64] = 1.0f;
}

// Reads what an earlier kernel has left.
__global__ void reads(float *x) {
  x[int(x[threadIdx.x]) + 64] = 1.0f;
}

__global__ void moves(float *x) {
  x[threadIdx.x + 64] = __shfl_xor(x[threadIdx.x], 5);
}
__global__ void reads_moved(float *x) {
  x[int(x[threadIdx.x + 64]) + 64] = 1.0f;
}

//===--- Ways that a value takes ------------------------------------------------------------------------===//

__device__ float inexact(const float *x) {
  return __builtin_amdgcn_exp2f(x[threadIdx.x]);
}
__device__ void store_at(float *x, float at) {
  x[int(at) + 64] = 1.0f;
}

// The address of an array of one's own is exact; what one of its elements holds is not.
__global__ void in_scratch(float *x) {
  volatile float own[8];
  for (int i = 0; i < 8; ++i)
    own[i] = 0.0f;
  own[threadIdx.x % 8] = inexact(x);
  store_at(x, own[threadIdx.x % 8]);
  x[int(own[(threadIdx.x + 1) % 8]) + 64] = 2.0f;
}

using Floats = float __attribute__((ext_vector_type(4)));
__global__ void in_matrix(float *x) {
  const float a = threadIdx.x == 0 ? inexact(x) : 0.0f;
  const Floats sums = __builtin_amdgcn_mfma_f32_16x16x4f32(a, 1.0f, Floats{}, 0, 0, 0);
  if (threadIdx.x == 1) store_at(x, sums[3]);
}

__global__ void by_dpp(float *x) {
  const int mine = __float_as_int(threadIdx.x == 0 ? inexact(x) : 0.0f);
  const int moved = __builtin_amdgcn_mov_dpp(mine, 0x111, 0xf, 0xf, true); // row_shr:1
  if (threadIdx.x == 1) store_at(x, __int_as_float(moved));
}

__global__ void by_lane(float *x) {
  const int first = __builtin_amdgcn_readfirstlane(__float_as_int(inexact(x)));
  float exact = 0.0f;
  asm volatile("s_nop 4\nv_writelane_b32 %0, %1, 3" : "+v"(exact) : "s"(first));
  store_at(x, exact);
}

__global__ void by_other_lane(float *x) {
  const int mine = __float_as_int(threadIdx.x == 0 ? inexact(x) : 0.0f);
  store_at(x, __int_as_float(__builtin_amdgcn_readlane(mine, 5)));
}

__global__ void by_swap(float *x) {
  store_at(x, atomicExch(&x[threadIdx.x], 0.0f));
}

__global__ void by_copy_to_lds(float *x) {
  __shared__ float values[64];
  asm volatile("s_mov_b32 m0, %1\ns_nop 4\nglobal_load_lds_dword %0, off\ns_waitcnt vmcnt(0)"
               :
               : "v"(&x[threadIdx.x]), "s"(unsigned(reinterpret_cast<size_t>(values)))
               : "memory");
  __syncthreads();
  store_at(x, values[threadIdx.x]);
}

__global__ void by_gpr_index(float *x) {
  float result;
  asm volatile("s_nop 1\nv_mov_b32 v40, %1\ns_set_gpr_idx_on %2, 1\ns_nop 4\nv_mov_b32 v41, v38\n"
               "s_set_gpr_idx_off\ns_nop 4\nv_mov_b32 %0, v41"
               : "=v"(result)
               : "v"(inexact(x)), "s"(2)
               : "v38", "v40", "v41");
  store_at(x, result);
}

__global__ void to_gpr_index(float *x) {
  float result;
  asm volatile("s_nop 1\nv_mov_b32 v40, 0\ns_set_gpr_idx_on %2, 8\ns_nop 4\nv_mov_b32 v38, %1\n"
               "s_set_gpr_idx_off\ns_nop 4\nv_mov_b32 %0, v40"
               : "=v"(result)
               : "v"(inexact(x)), "s"(2)
               : "v38", "v40");
  store_at(x, result);
}

__global__ void by_movrel(float *x) {
  const int first = __builtin_amdgcn_readfirstlane(__float_as_int(inexact(x)));
  int result;
  asm volatile("s_mov_b32 s38, 0\ns_mov_b32 s40, %1\ns_mov_b32 m0, 2\ns_nop 4\n"
               "s_movrels_b32 s41, s38\ns_mov_b32 %0, s41"
               : "=s"(result)
               : "s"(first)
               : "s38", "s40", "s41");
  store_at(x, __int_as_float(result));
}

__global__ void by_cmov(float *x) {
  const int first = __builtin_amdgcn_readfirstlane(__float_as_int(inexact(x)));
  int result;
  asm volatile("s_mov_b32 s40, %1\ns_cmp_eq_u32 0, 1\ns_cmov_b32 s40, 0\ns_mov_b32 %0, s40"
               : "=s"(result)
               : "s"(first)
               : "s40", "scc");
  store_at(x, __int_as_float(result));
}

__global__ void by_scalar_load(const float *__restrict__ x, float *__restrict__ out) {
  out[int(x[blockIdx.x])] = 1.0f;
}

// A scalar branch in which no lane takes part.
__global__ void without_lanes(float *x) {
  const int first = __builtin_amdgcn_readfirstlane(__float_as_int(inexact(x)));
  asm volatile("s_mov_b64 s[40:41], exec\ns_mov_b64 exec, 0\ns_cmp_eq_u32 %0, 1\n"
               "s_cbranch_scc1 .Lnever%=\n.Lnever%=:\ns_mov_b64 exec, s[40:41]\n"
               :
               : "s"(first)
               : "s40", "s41", "scc");
}

// A comparison that writes EXEC itself.
__global__ void compares_exec(float *x) {
  asm volatile("s_mov_b64 s[40:41], exec\nv_exp_f32 v40, %0\ns_nop 1\nv_cmpx_lt_f32 vcc, 2.0, v40\n"
               "s_nop 4\ns_mov_b64 exec, s[40:41]\n"
               :
               : "v"(x[threadIdx.x])
               : "v40", "vcc", "s40", "s41");
}

// A branch on an inexact value, and after it one on EXEC, which is what it was.
__global__ void rejoins(float *x) {
  asm volatile("v_exp_f32 v40, %0\ns_nop 1\nv_cmp_lt_f32 vcc, 2.0, v40\n"
               "s_and_saveexec_b64 s[40:41], vcc\ns_nop 4\ns_or_b64 exec, exec, s[40:41]\n"
               "s_cbranch_execz .Lnever%=\n.Lnever%=:\n"
               :
               : "v"(x[threadIdx.x])
               : "v40", "vcc", "s40", "s41", "scc");
}

//===--- Other sources ----------------------------------------------------------------------------------===//

__global__ void clock(float *x) {
  x[threadIdx.x] = float(__builtin_readcyclecounter() & 1);
}

__global__ void divides(float *x, unsigned divisor) {
  x[(threadIdx.x + 7u) / divisor] = 1.0f;
}

__global__ void adds(float *x) {
  unsafeAtomicAdd(&x[0], 1.0f);
}

__global__ void reciprocals(double *x) {
  x[threadIdx.x] = __builtin_amdgcn_rcp(x[threadIdx.x] + 1.0);
}

int main(int count, char **names) {
  const std::vector<float> zeros(256);
  float *const x = to_device(zeros);
  float *const other = to_device(zeros);
#define KERNEL(name)                                                                                         \
  {                                                                                                          \
    #name, name                                                                                              \
  }
  struct {
    const char *name;
    void (*kernel)(float *);
  } const kernels[] = {
      KERNEL(exact),          KERNEL(value),         KERNEL(lanes),        KERNEL(wave),
      KERNEL(address),        KERNEL(in_lds),        KERNEL(reads),        KERNEL(moves),
      KERNEL(reads_moved),    KERNEL(clock),         KERNEL(adds),         KERNEL(in_scratch),
      KERNEL(in_matrix),      KERNEL(by_dpp),        KERNEL(by_lane),      KERNEL(by_swap),
      KERNEL(by_copy_to_lds), KERNEL(by_gpr_index),  KERNEL(by_movrel),    KERNEL(by_cmov),
      KERNEL(rejoins),        KERNEL(by_other_lane), KERNEL(to_gpr_index), KERNEL(without_lanes),
      KERNEL(compares_exec)};
#undef KERNEL
  const size_t bytes = zeros.size() * sizeof(float);
  for (int i = 1; i < count; ++i) {
    const auto is = [&](const char *name) { return std::strcmp(names[i], name) == 0; };
    const auto found =
        std::find_if(std::begin(kernels), std::end(kernels), [&](auto &row) { return is(row.name); });
    if (found != std::end(kernels)) {
      found->kernel<<<1, 64>>>(x);
    } else if (is("by_scalar_load")) {
      by_scalar_load<<<1, 64>>>(x, other);
    } else if (is("divides")) {
      divides<<<1, 64>>>(x, 3u);
    } else if (is("reciprocals")) {
      reciprocals<<<1, 64>>>(reinterpret_cast<double *>(x));
    } else if (is("upload")) {
      HIP(hipMemcpy(x, zeros.data(), bytes, hipMemcpyHostToDevice));
    } else if (is("fill")) {
      HIP(hipMemset(x, 0, bytes));
    } else if (is("away_and_back")) {
      HIP(hipMemcpy(other, x, bytes, hipMemcpyDeviceToDevice));
      HIP(hipMemset(x, 0, bytes));
      HIP(hipMemcpy(x, other, bytes, hipMemcpyDeviceToDevice));
    } else {
      return 2;
    }
    HIP(hipDeviceSynchronize());
  }
  HIP(hipFree(other));
  HIP(hipFree(x));
  return 0;
}
