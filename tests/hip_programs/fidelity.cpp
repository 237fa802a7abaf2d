// Kernels for the fidelity note of `sluice-emu exec`. The arguments name those to launch, in their order; all
// of them work on the same memory.
#include "program.h"

#include <cstring>

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
  struct {
    const char *name;
    void (*kernel)(float *);
  } const kernels[] = {{"exact", exact}, {"value", value},     {"lanes", lanes},
                       {"wave", wave},   {"address", address}, {"in_lds", in_lds},
                       {"reads", reads}, {"moves", moves},     {"reads_moved", reads_moved},
                       {"clock", clock}, {"adds", adds}};
  for (int i = 1; i < count; ++i) {
    for (const auto &[name, kernel] : kernels)
      if (std::strcmp(names[i], name) == 0) kernel<<<1, 64>>>(x);
    if (std::strcmp(names[i], "divides") == 0) divides<<<1, 64>>>(x, 3u);
    if (std::strcmp(names[i], "reciprocals") == 0) reciprocals<<<1, 64>>>(reinterpret_cast<double *>(x));
    const size_t bytes = zeros.size() * sizeof(float);
    if (std::strcmp(names[i], "upload") == 0) HIP(hipMemcpy(x, zeros.data(), bytes, hipMemcpyHostToDevice));
    if (std::strcmp(names[i], "fill") == 0) HIP(hipMemset(x, 0, bytes));
    if (std::strcmp(names[i], "away_and_back") == 0) {
      HIP(hipMemcpy(other, x, bytes, hipMemcpyDeviceToDevice));
      HIP(hipMemset(x, 0, bytes));
      HIP(hipMemcpy(x, other, bytes, hipMemcpyDeviceToDevice));
    }
    HIP(hipDeviceSynchronize());
  }
  return 0;
}
