// A sum in one launch: over the lanes of a wave with shuffles, over the waves of a workgroup through LDS, and
// over workgroups by the last one that arrives at a counter.
#include "program.h"

constexpr int block = 256;

__device__ float wave_sum(float value) {
  for (int mask = 32; mask > 0; mask /= 2)
    value += __shfl_xor(value, mask);
  return value;
}

__device__ float block_sum(float value) {
  __shared__ float waves[block / 64];
  value = wave_sum(value);
  __syncthreads();
  if (threadIdx.x % 64 == 0) waves[threadIdx.x / 64] = value;
  __syncthreads();
  float sum = 0;
  for (float wave : waves)
    sum += wave;
  return sum;
}

__global__ __launch_bounds__(block) void reduce(const float *in, int count, float *partial, unsigned *arrived,
                                                float *out) {
  float sum = 0;
  for (int i = int(blockIdx.x * block + threadIdx.x); i < count; i += int(gridDim.x * block))
    sum += in[i];
  sum = block_sum(sum);
  __shared__ bool last;
  if (threadIdx.x == 0) {
    __hip_atomic_store(&partial[blockIdx.x], sum, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
    const unsigned before = __hip_atomic_fetch_add(arrived, 1u, __ATOMIC_ACQ_REL, __HIP_MEMORY_SCOPE_AGENT);
    last = before == gridDim.x - 1;
  }
  __syncthreads();
  if (!last) return;
  float all = 0;
  for (int i = int(threadIdx.x); i < int(gridDim.x); i += block)
    all += __hip_atomic_load(&partial[i], __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
  all = block_sum(all);
  if (threadIdx.x == 0) *out = all;
}

int main() {
  const int count = 100000, grid = 37;
  const std::vector<float> in = random_floats(count, 7);
  double expected = 0;
  for (float value : in)
    expected += double(value);
  float *const device_in = to_device(in), *const partial = to_device(std::vector<float>(grid));
  float *const out = to_device(std::vector<float>(1));
  unsigned *const arrived = to_device(std::vector<unsigned>(1));
  reduce<<<grid, block>>>(device_in, count, partial, arrived, out);
  HIP(hipGetLastError());
  EXPECT(std::fabs(double(to_host(out, 1)[0]) - expected) < 1e-2);
  EXPECT(to_host(arrived, 1)[0] == unsigned(grid));
  return 0;
}
