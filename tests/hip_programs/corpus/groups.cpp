// Barriers of workgroups and grids, votes, shuffles, lanes that store to one place.
#include "corpus.h"

#include <algorithm>

#include <hip/hip_cooperative_groups.h>

namespace {

constexpr int block = 256;

__global__ void pass_on(int *values, int *out) {
  const cooperative_groups::grid_group grid = cooperative_groups::this_grid();
  if (threadIdx.x == 0) values[blockIdx.x] = int(blockIdx.x) + 1;
  grid.sync();
  if (threadIdx.x == 0) out[blockIdx.x] = values[(blockIdx.x + 1) % gridDim.x];
}

/// A barrier of the workgroup orders nothing between workgroups.
__global__ void pass_on_without_barrier(int *values, int *out) {
  if (threadIdx.x == 0) values[blockIdx.x] = int(blockIdx.x) + 1;
  __syncthreads();
  if (threadIdx.x == 0) out[blockIdx.x] = values[(blockIdx.x + 1) % gridDim.x];
}

template <Twin twin> __global__ void leave_early(const int *in, int *out, int count) {
  __shared__ int values[block];
  const int item = int(threadIdx.x);
  if (twin == Twin::wrong && item >= count) return;
  if (item < count) values[item] = in[item];
  __syncthreads();
  if (item < count) out[item] = values[count - 1 - item];
}

template <Twin twin> void reverse() {
  constexpr int count = 128;
  const std::vector<int> in = random_ints(count, 13);
  int *const out = zeros<int>(count);
  leave_early<twin><<<1, block>>>(to_device(in), out, count);
  expect(twin, out, std::vector<int>(in.rbegin(), in.rend()));
}

__device__ int sum_of_wave(int value) {
  for (int distance = 32; distance > 0; distance /= 2)
    value += __shfl_down(value, distance);
  return value;
}

__global__ void sum(const int *in, int *out) {
  const int total = sum_of_wave(in[threadIdx.x]);
  if (threadIdx.x == 0) *out = total;
}

__global__ void vote(const int *in, int *out) {
  const bool large = in[threadIdx.x] > 1000;
  const unsigned long long votes = __ballot(large);
  if (threadIdx.x == 0) *out = __popcll(votes);
}

__global__ void choose(const int *in, int *out) {
  if (in[threadIdx.x] > 1000) out[threadIdx.x] = 1;
}

/// All lanes store to one place.
template <Twin twin> __global__ void store_together(int *out) {
  *out = twin == Twin::right ? 7 : int(threadIdx.x);
}

template <Twin twin> __global__ void store_together_in_lds(int *out) {
  __shared__ int value;
  if (threadIdx.x < 64) value = twin == Twin::right ? 7 : int(threadIdx.x);
  __syncthreads();
  out[threadIdx.x] = value;
}

} // namespace

CASE(grid_barrier, "") {
  constexpr int blocks = 12;
  std::vector<int> expected(blocks);
  for (int i = 0; i < blocks; ++i)
    expected[size_t(i)] = (i + 1) % blocks + 1;
  int *values = zeros<int>(blocks), *out = zeros<int>(blocks);
  void *arguments[] = {&values, &out};
  HIP(hipLaunchCooperativeKernel(reinterpret_cast<const void *>(&pass_on), dim3(blocks), dim3(64), arguments,
                                 0, nullptr));
  expect(Twin::right, out, expected);
}
CASE(barrier_of_the_workgroup_for_the_grid, "global_race") {
  pass_on_without_barrier<<<12, 64>>>(zeros<int>(12), zeros<int>(12));
  finish();
}
CASE(barrier_for_all, "") {
  reverse<Twin::right>();
}
CASE(barrier_after_some_have_left, "barrier_mismatch") {
  reverse<Twin::wrong>();
}
CASE(sum_of_shuffles, "") {
  const std::vector<int> in = random_ints(64, 14);
  int total = 0;
  for (int value : in)
    total += value;
  int *const out = zeros<int>(1);
  sum<<<1, 64>>>(to_device(in), out);
  expect(Twin::right, out, {total});
}
CASE(sum_of_shuffles_of_fresh_memory, "register_uninitialised") {
  sum<<<1, 64>>>(fresh<int>(64), zeros<int>(1));
  finish();
}
CASE(votes, "") {
  const std::vector<int> in = random_ints(64, 15);
  int *const out = zeros<int>(1);
  vote<<<1, 64>>>(to_device(in), out);
  expect(Twin::right, out,
         {int(std::count_if(in.begin(), in.end(), [](int value) { return value > 1000; }))});
}
CASE(votes_on_fresh_memory, "register_uninitialised") {
  vote<<<1, 64>>>(fresh<int>(64), zeros<int>(1));
  finish();
}
CASE(branch_on_fresh_memory, "register_uninitialised") {
  choose<<<1, 64>>>(fresh<int>(64), zeros<int>(64));
  finish();
}
CASE(lanes_that_store_one_value, "") {
  int *const out = zeros<int>(1);
  store_together<Twin::right><<<1, 64>>>(out);
  expect(Twin::right, out, {7});
}
CASE(lanes_that_store_many_values, "lanes_store_different") {
  store_together<Twin::wrong><<<1, 64>>>(zeros<int>(1));
  finish();
}
CASE(lanes_that_store_one_value_in_lds, "") {
  int *const out = zeros<int>(128);
  store_together_in_lds<Twin::right><<<1, 128>>>(out);
  expect(Twin::right, out, std::vector<int>(128, 7));
}
CASE(lanes_that_store_many_values_in_lds, "lanes_store_different") {
  store_together_in_lds<Twin::wrong><<<1, 128>>>(zeros<int>(128));
  finish();
}
