// Queries of a program about the device and its kernels before it launches.
#include "program.h"

#include <algorithm>
#include <cstring>

__global__ __launch_bounds__(256) void small(float *out) {
  out[threadIdx.x] = 1;
}

__global__ void with_lds(float *out) {
  __shared__ float values[8192]; // 32 KiB: two workgroups on a compute unit
  values[threadIdx.x] = float(threadIdx.x);
  __syncthreads();
  out[threadIdx.x] = values[blockDim.x - 1 - threadIdx.x];
}

int main() {
  int count = 0, device = -1, wave = 0, units = 0, lds = 0, threads = 0;
  HIP(hipGetDeviceCount(&count));
  HIP(hipGetDevice(&device));
  EXPECT(count >= 1 && device == 0);
  HIP(hipDeviceGetAttribute(&wave, hipDeviceAttributeWarpSize, device));
  HIP(hipDeviceGetAttribute(&units, hipDeviceAttributeMultiprocessorCount, device));
  HIP(hipDeviceGetAttribute(&lds, hipDeviceAttributeMaxSharedMemoryPerBlock, device));
  HIP(hipDeviceGetAttribute(&threads, hipDeviceAttributeMaxThreadsPerBlock, device));
  EXPECT(wave == 64 && units == 304 && lds == 65536 && threads == 1024);
  hipDeviceProp_t properties;
  HIP(hipGetDeviceProperties(&properties, device));
  EXPECT(std::strncmp(properties.gcnArchName, "gfx942", 6) == 0);
  EXPECT(properties.warpSize == wave && properties.multiProcessorCount == units);
  EXPECT(properties.sharedMemPerBlock == 65536 && properties.totalGlobalMem > (size_t(1) << 30));

  hipFuncAttributes attributes;
  HIP(hipFuncGetAttributes(&attributes, reinterpret_cast<const void *>(&small)));
  EXPECT(attributes.maxThreadsPerBlock == 256 && attributes.sharedSizeBytes == 0 && attributes.numRegs > 0);
  HIP(hipFuncGetAttributes(&attributes, reinterpret_cast<const void *>(&with_lds)));
  EXPECT(attributes.maxThreadsPerBlock == 1024 && attributes.sharedSizeBytes == 32768);
  HIP(hipFuncSetAttribute(reinterpret_cast<const void *>(&with_lds),
                          hipFuncAttributeMaxDynamicSharedMemorySize, 32768));
  EXPECT(hipFuncSetAttribute(reinterpret_cast<const void *>(&with_lds),
                             hipFuncAttributeMaxDynamicSharedMemorySize, 32769) == hipErrorInvalidValue);
  EXPECT(hipGetLastError() == hipErrorInvalidValue);

  int blocks = 0, grid = 0, block = 0;
  HIP(hipOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, with_lds, 128, 0));
  EXPECT(blocks == 2);
  HIP(hipOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, with_lds, 128, 1024));
  EXPECT(blocks == 1);
  HIP(hipOccupancyMaxPotentialBlockSize(&grid, &block, with_lds, 0, 0));
  EXPECT(block == 1024 && grid == 2 * units);
  HIP(hipOccupancyMaxPotentialBlockSize(&grid, &block, small, 0, 0));
  EXPECT(block == 256 && grid == 8 * units);
  HIP(hipOccupancyMaxPotentialBlockSize(&grid, &block, small, 0, 100));
  EXPECT(block == 64);

  float *const out = to_device(std::vector<float>(1024));
  with_lds<<<1, 1024>>>(out);
  HIP(hipGetLastError());
  const std::vector<float> values = to_host(out, 1024);
  for (int i = 0; i < 1024; ++i)
    EXPECT(values[size_t(i)] == float(1023 - i));
  return 0;
}
