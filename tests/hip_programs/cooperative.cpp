// Kernels whose workgroups wait for one another: with the barrier of cooperative groups, and with one built
// from atomics; and grids that are too large for that.
#include "program.h"

#include <hip/hip_cooperative_groups.h>

/// Sums in rounds: each workgroup sums its part, then half as many sum two of those, and so on.
__global__ void sum_in_rounds(float *partial, const float *values, int count, int *valid) {
  const cooperative_groups::grid_group grid = cooperative_groups::this_grid();
  if (threadIdx.x == 0) {
    float sum = 0;
    for (int i = int(blockIdx.x); i < count; i += int(gridDim.x))
      sum += values[i];
    partial[blockIdx.x] = sum;
    if (blockIdx.x == 0) *valid = grid.is_valid();
  }
  for (unsigned width = gridDim.x; width > 1; width = (width + 1) / 2) {
    grid.sync();
    const unsigned half = (width + 1) / 2;
    if (threadIdx.x == 0 && blockIdx.x < width / 2) partial[blockIdx.x] += partial[blockIdx.x + half];
  }
}

/// Passes when all workgroups have arrived `round` times.
__device__ void meet(unsigned *arrived, unsigned round) {
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    atomicAdd(arrived, 1u);
    while (__hip_atomic_load(arrived, __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_AGENT) < round * gridDim.x) {
    }
    __threadfence();
  }
  __syncthreads();
}

/// Each workgroup adds the value that its neighbour had in the round before.
__global__ void pass_around(unsigned *one, unsigned *other, unsigned *arrived, unsigned rounds) {
  const unsigned neighbour = (blockIdx.x + 1) % gridDim.x;
  for (unsigned round = 0; round < rounds; ++round) {
    unsigned *const from = round % 2 ? other : one, *const to = round % 2 ? one : other;
    if (threadIdx.x == 0) to[blockIdx.x] = from[blockIdx.x] + from[neighbour];
    meet(arrived, round + 1);
  }
}

int main() {
  int cooperative = 0, units = 0, per_unit = 0;
  HIP(hipDeviceGetAttribute(&cooperative, hipDeviceAttributeCooperativeLaunch, 0));
  HIP(hipDeviceGetAttribute(&units, hipDeviceAttributeMultiprocessorCount, 0));
  EXPECT(cooperative == 1);

  constexpr int count = 4000;
  const std::vector<float> values(count, 0.5f);
  float *const device_values = to_device(values);
  const auto *const sum = reinterpret_cast<const void *>(&sum_in_rounds);
  for (unsigned blocks : {1u, 2u, 37u, 64u}) {
    std::vector<float> partial(blocks);
    float *device_partial = to_device(partial);
    int *valid = to_device(std::vector<int>{-1}), size = count;
    void *arguments[] = {&device_partial, const_cast<float **>(&device_values), &size, &valid};
    HIP(hipLaunchCooperativeKernel(sum, dim3(blocks), dim3(128), arguments, 0, nullptr));
    EXPECT(to_host(device_partial, 1)[0] == count * 0.5f);
    EXPECT(to_host(valid, 1)[0] != 0);
    HIP(hipFree(device_partial));
    HIP(hipFree(valid));
  }

  const unsigned blocks = 100, rounds = 3;
  std::vector<unsigned> numbers(blocks), expected;
  for (unsigned i = 0; i < blocks; ++i)
    numbers[i] = i * i;
  unsigned *one = to_device(numbers), *other = to_device(numbers);
  unsigned *arrived = to_device(std::vector<unsigned>(1));
  unsigned round_count = rounds;
  void *arguments[] = {&one, &other, &arrived, &round_count};
  const auto *const pass = reinterpret_cast<const void *>(&pass_around);
  HIP(hipLaunchCooperativeKernel(pass, dim3(blocks), dim3(64), arguments, 0, nullptr));
  for (unsigned round = 0; round < rounds; ++round) {
    expected = numbers;
    for (unsigned i = 0; i < blocks; ++i)
      expected[i] += numbers[(i + 1) % blocks];
    numbers = expected;
  }
  EXPECT(to_host(rounds % 2 ? other : one, blocks) == expected);

  // As many workgroups as are resident at once, and one more.
  constexpr unsigned lds = 30 << 10; // two workgroups on a compute unit
  HIP(hipOccupancyMaxActiveBlocksPerMultiprocessor(&per_unit, pass_around, 64, lds));
  const dim3 largest(unsigned(per_unit * units)), larger(largest.x + 1);
  EXPECT(per_unit == 2);
  EXPECT(hipLaunchCooperativeKernel(pass, larger, dim3(64), arguments, lds, nullptr) ==
         hipErrorCooperativeLaunchTooLarge);
  EXPECT(hipGetLastError() == hipErrorCooperativeLaunchTooLarge);
  round_count = 0;
  HIP(hipLaunchCooperativeKernel(pass, largest, dim3(64), arguments, lds, nullptr));
  HIP(hipDeviceSynchronize());

  for (unsigned *buffer : {one, other, arrived})
    HIP(hipFree(buffer));
  HIP(hipFree(device_values));
  return 0;
}
