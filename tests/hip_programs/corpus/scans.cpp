// Prefix sums: in LDS, in waves, over workgroups that look back at their predecessors.
#include "corpus.h"

namespace {

constexpr int block = 256;

std::vector<int> sums_of(const std::vector<int> &values, size_t each) {
  std::vector<int> sums = values;
  for (size_t i = 0; i < sums.size(); ++i)
    if (i % each != 0) sums[i] += sums[i - 1];
  return sums;
}

template <Twin twin> __global__ void scan_in_lds(const int *in, int *out) {
  __shared__ int values[2][block];
  const int item = int(threadIdx.x);
  int from = 0;
  values[0][item] = in[blockIdx.x * block + threadIdx.x];
  __syncthreads();
  for (int distance = 1; distance < block; distance *= 2) {
    values[1 - from][item] = values[from][item] + (item >= distance ? values[from][item - distance] : 0);
    from = 1 - from;
    if (twin == Twin::right || distance != 64) __syncthreads();
  }
  out[blockIdx.x * block + threadIdx.x] = values[from][item];
}

template <Twin twin> void scan_blocks() {
  const std::vector<int> in = random_ints(8 * block, 1);
  int *const out = zeros<int>(in.size());
  scan_in_lds<twin><<<8, block>>>(to_device(in), out);
  expect(twin, out, sums_of(in, block));
}

__device__ int scan_of_wave(int value) {
  for (int distance = 1; distance < 64; distance *= 2) {
    const int other = __shfl_up(value, distance);
    if (int(threadIdx.x % 64) >= distance) value += other;
  }
  return value;
}

__global__ void scan_with_shuffles(const int *in, int *out) {
  __shared__ int totals[block / 64];
  const int wave = int(threadIdx.x / 64);
  int value = scan_of_wave(in[blockIdx.x * block + threadIdx.x]);
  if (threadIdx.x % 64 == 63) totals[wave] = value;
  __syncthreads();
  for (int i = 0; i < wave; ++i)
    value += totals[i];
  out[blockIdx.x * block + threadIdx.x] = value;
}

/// Each workgroup waits for the sum of those before it. Workgroups start in ascending order of their tickets.
template <Twin twin>
__global__ void scan_looking_back(const int *in, int *out, int *sums, int *ready, int *ticket) {
  __shared__ int number, before;
  if (threadIdx.x == 0) number = atomicAdd(ticket, 1);
  __syncthreads();
  const int i = number * 64 + int(threadIdx.x);
  const int value = scan_of_wave(in[i]);
  const int total = __shfl(value, 63);
  if (threadIdx.x == 0) {
    before = 0;
    if (number > 0) {
      while (__hip_atomic_load(&ready[number - 1], __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_AGENT) == 0) {
      }
      before = sums[number - 1];
    }
    sums[number] = before + total;
    const int order = twin == Twin::right ? __ATOMIC_RELEASE : __ATOMIC_RELAXED;
    __hip_atomic_store(&ready[number], 1, order, __HIP_MEMORY_SCOPE_AGENT);
  }
  __syncthreads();
  out[i] = before + value;
}

template <Twin twin> void scan_lookback() {
  const std::vector<int> in = random_ints(32 * 64, 2);
  int *const out = zeros<int>(in.size());
  scan_looking_back<twin><<<32, 64>>>(to_device(in), out, zeros<int>(32), zeros<int>(32), zeros<int>(1));
  expect(twin, out, sums_of(in, in.size()));
}

} // namespace

CASE(scan_in_blocks, "") {
  scan_blocks<Twin::right>();
}
CASE(scan_without_barrier, "lds_race") {
  scan_blocks<Twin::wrong>();
}
CASE(scan_of_waves, "") {
  const std::vector<int> in = random_ints(4 * block, 3);
  int *const out = zeros<int>(in.size());
  scan_with_shuffles<<<4, block>>>(to_device(in), out);
  expect(Twin::right, out, sums_of(in, block));
}
CASE(scan_that_looks_back, "") {
  scan_lookback<Twin::right>();
}
CASE(scan_that_looks_back_without_release, "global_race") {
  scan_lookback<Twin::wrong>();
}
