// The kernels that module.cpp loads.
#include <hip/hip_runtime.h>

extern "C" {
__device__ float offset;

__global__ void axpy(const float *x, float *y, float factor, int count) {
  const int i = int(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) y[i] += factor * x[i] + offset;
}
}
