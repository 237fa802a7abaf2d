// Messages behind a flag, flags that many workgroups raise, the last workgroup of all, compare-and-swap.
#include "corpus.h"

#include <algorithm>

namespace {

constexpr int agent = __HIP_MEMORY_SCOPE_AGENT;

template <Twin twin> __global__ void message(int *data, int *flag, int *out) {
  const int item = int(threadIdx.x);
  if (blockIdx.x == 0) {
    data[item] = item + 1;
    __syncthreads();
    if (item == 0)
      __hip_atomic_store(flag, 1, twin == Twin::right ? __ATOMIC_RELEASE : __ATOMIC_RELAXED, agent);
    return;
  }
  if (item == 0)
    while (__hip_atomic_load(flag, __ATOMIC_ACQUIRE, agent) == 0) {
    }
  __syncthreads();
  out[item] = data[item];
}

template <Twin twin> void send() {
  constexpr int count = 128;
  std::vector<int> expected(count);
  for (int i = 0; i < count; ++i)
    expected[size_t(i)] = i + 1;
  int *const out = zeros<int>(count);
  message<twin><<<2, count>>>(zeros<int>(count), zeros<int>(1), out);
  expect(twin, out, expected);
}

/// One value for all, or the workgroup's own.
template <Twin twin> __global__ void raise(int *flag) {
  if (threadIdx.x == 0) *flag = twin == Twin::right ? 1 : int(blockIdx.x) + 1;
}

template <Twin twin> void raise_one() {
  int *const flag = zeros<int>(1);
  raise<twin><<<8, 64>>>(flag);
  expect(twin, flag, {1});
}

enum class LastBlock { right, resets, without_fence };

template <LastBlock kind> __global__ void sum_in_last(const int *in, int *sums, int *out, unsigned *count) {
  __shared__ bool last;
  if (threadIdx.x == 0) {
    sums[blockIdx.x] = in[2 * blockIdx.x] + in[2 * blockIdx.x + 1];
    if (kind != LastBlock::without_fence) __threadfence();
    last = atomicAdd(count, 1u) == gridDim.x - 1;
  }
  __syncthreads();
  if (!last || threadIdx.x != 0) return;
  __threadfence();
  int sum = 0;
  for (unsigned i = 0; i < gridDim.x; ++i)
    sum += sums[i];
  *out = sum;
  if (kind == LastBlock::resets) *count = 0;
}

template <LastBlock kind> void last_block() {
  const std::vector<int> in = random_ints(128, 10);
  int sum = 0;
  for (int value : in)
    sum += value;
  int *const out = zeros<int>(1);
  sum_in_last<kind><<<64, 64>>>(to_device(in), zeros<int>(64), out, zeros<unsigned>(1));
  expect(kind == LastBlock::without_fence ? Twin::wrong : Twin::right, out, {sum});
}

/// The first read is an ordinary one: the exchange finds out whether it was right.
__global__ void largest(const int *in, int *out) {
  const int value = in[blockIdx.x * blockDim.x + threadIdx.x];
  int seen = *out;
  while (seen < value) {
    const int held = atomicCAS(out, seen, value);
    if (held == seen) break;
    seen = held;
  }
}

/// Each workgroup looks at a counter while others count.
__global__ void count_and_look(int *count, int *seen) {
  if (threadIdx.x != 0) return;
  atomicAdd(count, 1);
  seen[blockIdx.x] = *count;
}

template <Twin twin> __global__ void count_with_lock(unsigned *lock, int *counter) {
  if (threadIdx.x != 0) return;
  unsigned expected = 0;
  const int order = twin == Twin::right ? __ATOMIC_ACQUIRE : __ATOMIC_RELAXED;
  while (!__hip_atomic_compare_exchange_strong(lock, &expected, 1u, order, __ATOMIC_RELAXED, agent))
    expected = 0;
  *counter += 1;
  __hip_atomic_store(lock, 0u, __ATOMIC_RELEASE, agent);
}

template <Twin twin> void locked() {
  int *const counter = zeros<int>(1);
  count_with_lock<twin><<<16, 64>>>(zeros<unsigned>(1), counter);
  expect(twin, counter, {16});
}

__global__ void tally(const int *in, int *counts) {
  atomicAdd(&counts[in[blockIdx.x * blockDim.x + threadIdx.x] & 15], 1);
}

__global__ void tally_without_atomics(const int *in, int *counts) {
  counts[in[blockIdx.x * blockDim.x + threadIdx.x] & 15] += 1;
}

} // namespace

CASE(message_behind_a_flag, "") {
  send<Twin::right>();
}
CASE(message_behind_a_flag_without_release, "global_race") {
  send<Twin::wrong>();
}
CASE(flag_that_many_raise, "") {
  raise_one<Twin::right>();
}
CASE(flag_of_many_values, "global_race") {
  raise_one<Twin::wrong>();
}
CASE(last_block_sums, "") {
  last_block<LastBlock::right>();
}
CASE(last_block_resets_its_counter, "") {
  last_block<LastBlock::resets>();
}
CASE(last_block_without_fence, "global_race") {
  last_block<LastBlock::without_fence>();
}
CASE(swap_after_an_ordinary_read, "") {
  const std::vector<int> in = random_ints(512, 11);
  int *const out = zeros<int>(1);
  largest<<<4, 128>>>(to_device(in), out);
  expect(Twin::right, out, {*std::max_element(in.begin(), in.end())});
}
CASE(counter_read_while_others_count, "global_race") {
  int *const count = zeros<int>(1);
  count_and_look<<<8, 64>>>(count, zeros<int>(8));
  expect(Twin::right, count, {8}); // the report comes at the end of the launch, which keeps its results
}
CASE(lock, "") {
  locked<Twin::right>();
}
CASE(lock_without_acquire, "stale_cache") {
  locked<Twin::wrong>();
}
CASE(tally_of_atomics, "") {
  const std::vector<int> in = random_ints(1024, 12);
  std::vector<int> counts(16);
  for (int value : in)
    ++counts[size_t(value & 15)];
  int *const out = zeros<int>(16);
  tally<<<4, 256>>>(to_device(in), out);
  expect(Twin::right, out, counts);
}
CASE(tally_of_stores, "global_race") {
  tally_without_atomics<<<4, 256>>>(to_device(random_ints(1024, 12)), zeros<int>(16));
  finish();
}
