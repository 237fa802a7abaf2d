// Sorts: networks in LDS and in memory, digits counted by atomics, merged parts.
#include "corpus.h"

#include <algorithm>

namespace {

constexpr int block = 256;

std::vector<int> sorted(std::vector<int> values) {
  std::sort(values.begin(), values.end());
  return values;
}

__device__ void order(int &low, int &high) {
  if (low <= high) return;
  const int value = low;
  low = high;
  high = value;
}

template <Twin twin> __global__ void bitonic(int *values) {
  __shared__ int sorted[block];
  const unsigned item = threadIdx.x;
  sorted[item] = values[item];
  __syncthreads();
  for (unsigned size = 2; size <= block; size *= 2)
    for (unsigned distance = size / 2; distance > 0; distance /= 2) {
      const unsigned other = item ^ distance;
      if (other > item) {
        if ((item & size) == 0)
          order(sorted[item], sorted[other]);
        else
          order(sorted[other], sorted[item]);
      }
      // Pairs within a wave need no barrier on this machine, but those of other waves do.
      if (twin == Twin::right || distance != 64) __syncthreads();
    }
  values[item] = sorted[item];
}

template <Twin twin> void sort_in_lds() {
  const std::vector<int> in = random_ints(block, 4);
  int *const values = to_device(in);
  bitonic<twin><<<1, block>>>(values);
  expect(twin, values, sorted(in));
}

/// Odd-even transposition of one workgroup, in memory.
template <Twin twin> __global__ void transposition(int *values, int count) {
  for (int round = 0; round < count; ++round) {
    const int first = 2 * int(threadIdx.x) + round % 2;
    if (first + 1 < count) order(values[first], values[first + 1]);
    if (twin == Twin::right || round != 5) __syncthreads();
  }
}

template <Twin twin> void sort_in_memory() {
  const std::vector<int> in = random_ints(block, 5);
  int *const values = to_device(in);
  transposition<twin><<<1, block / 2>>>(values, block);
  expect(twin, values, sorted(in));
}

__global__ void sort_by_digit(int *values) {
  __shared__ unsigned counts[16], starts[16];
  __shared__ int out[block];
  const unsigned item = threadIdx.x;
  int value = values[item];
  for (int bit = 0; bit < 16; bit += 4) {
    if (item < 16) counts[item] = 0;
    __syncthreads();
    const unsigned digit = unsigned(value) >> bit & 15;
    unsigned rank = 0;
    // Each wave in its turn, so that the order of equal digits is kept.
    for (unsigned wave = 0; wave < block / 64; ++wave) {
      if (item / 64 == wave)
        for (unsigned lane = 0; lane < 64; ++lane)
          if (item % 64 == lane) rank = atomicAdd(&counts[digit], 1u);
      __syncthreads();
    }
    if (item == 0) {
      unsigned sum = 0;
      for (int i = 0; i < 16; ++i) {
        starts[i] = sum;
        sum += counts[i];
      }
    }
    __syncthreads();
    out[starts[digit] + rank] = value;
    __syncthreads();
    value = out[item];
    __syncthreads();
  }
  values[item] = value;
}

template <Twin twin> __global__ void count_digits(const int *in, int *out) {
  __shared__ int counts[16];
  if (twin == Twin::right && threadIdx.x < 16) counts[threadIdx.x] = 0;
  __syncthreads();
  atomicAdd(&counts[in[threadIdx.x] & 15], 1);
  __syncthreads();
  if (threadIdx.x < 16) out[threadIdx.x] = counts[threadIdx.x];
}

/// The last lane of a wave reads the first element of the next one's part and throws it away.
__global__ void neighbours(int *out, int rounds) {
  __shared__ int values[block + 1];
  const int item = int(threadIdx.x);
  if (item == 0) values[block] = 0;
  __syncthreads();
  for (int round = 0; round < rounds; ++round) {
    values[item] = item + round;
    __builtin_amdgcn_wave_barrier();
    const int next = values[item + 1];
    __builtin_amdgcn_wave_barrier();
    out[item] = item % 64 == 63 ? -1 : next;
  }
}

} // namespace

CASE(sort_network, "") {
  sort_in_lds<Twin::right>();
}
CASE(sort_network_without_barrier, "lds_race") {
  sort_in_lds<Twin::wrong>();
}
CASE(sort_of_one_workgroup_in_memory, "") {
  sort_in_memory<Twin::right>();
}
CASE(sort_of_one_workgroup_in_memory_without_barrier, "global_race") {
  sort_in_memory<Twin::wrong>();
}
CASE(sort_by_digits, "") {
  const std::vector<int> in = random_ints(block, 6);
  int *const values = to_device(in);
  sort_by_digit<<<1, block>>>(values);
  expect(Twin::right, values, sorted(in));
}
CASE(digits_counted, "") {
  const std::vector<int> in = random_ints(block, 6);
  std::vector<int> counts(16);
  for (int value : in)
    ++counts[size_t(value & 15)];
  int *const out = zeros<int>(16);
  count_digits<Twin::right><<<1, block>>>(to_device(in), out);
  expect(Twin::right, out, counts);
}
CASE(digits_counted_from_anything, "lds_uninitialised") {
  count_digits<Twin::wrong><<<1, block>>>(to_device(random_ints(block, 6)), zeros<int>(16));
  finish();
}
CASE(read_of_a_neighbour_thrown_away, "") {
  int *const out = zeros<int>(block);
  neighbours<<<1, block>>>(out, 3);
  std::vector<int> expected(block);
  for (int i = 0; i < block; ++i)
    expected[size_t(i)] = i % 64 == 63 ? -1 : i + 3;
  expect(Twin::right, out, expected);
}
