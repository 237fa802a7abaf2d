// Counts bytes: in LDS for each workgroup, then into memory, both with atomics.
#include "program.h"

__global__ void histogram(const unsigned char *in, int count, unsigned *bins) {
  __shared__ unsigned local[256];
  for (unsigned i = threadIdx.x; i < 256; i += blockDim.x)
    local[i] = 0;
  __syncthreads();
  for (int i = int(blockIdx.x * blockDim.x + threadIdx.x); i < count; i += int(gridDim.x * blockDim.x))
    atomicAdd(&local[in[i]], 1u);
  __syncthreads();
  for (unsigned i = threadIdx.x; i < 256; i += blockDim.x)
    if (local[i] != 0) atomicAdd(&bins[i], local[i]);
}

int main() {
  const int count = 50000;
  std::vector<unsigned char> in(count);
  unsigned state = 11;
  std::vector<unsigned> expected(256);
  for (unsigned char &value : in) {
    value = (unsigned char)(next_random(state) >> 24 & next_random(state) >> 20);
    ++expected[value];
  }
  unsigned char *const device_in = to_device(in);
  unsigned *const bins = to_device(std::vector<unsigned>(256));
  histogram<<<20, 192>>>(device_in, count, bins);
  HIP(hipGetLastError());
  EXPECT(to_host(bins, 256) == expected);
  HIP(hipFree(device_in));
  HIP(hipFree(bins));
  return 0;
}
