// Work-items that share: LDS, barriers, atomics, lanes of a wave, blocks that wait for others.
#include "device.h"

extern __shared__ char dynamic_lds[];

// A tree in LDS of dynamic size; the last block to arrive adds up the results of all blocks.
template <class T>
__device__ void reduce(T *result, T *partial, uint32 *arrived, const T *in, uint32 n) {
  T *tree = reinterpret_cast<T *>(dynamic_lds);
  const uint32 t = threadIdx.x;
  T sum = 0;
  for (uint32 i = blockIdx.x * blockDim.x + t; i < n; i += gridDim.x * blockDim.x) sum += in[i];
  auto block_sum = [&](T mine) {
    tree[t] = mine;
    __syncthreads();
    for (uint32 width = blockDim.x / 2; width > 0; width /= 2) {
      if (t < width) tree[t] += tree[t + width];
      __syncthreads();
    }
    const T all = tree[0];
    __syncthreads();
    return all;
  };
  sum = block_sum(sum);
  __shared__ bool last;
  if (t == 0) {
    partial[blockIdx.x] = sum;
    __threadfence();
    last = atomicAdd(arrived, 1u) == gridDim.x - 1;
    __threadfence();
  }
  __syncthreads();
  if (!last) return;
  T all = 0;
  for (uint32 i = t; i < gridDim.x; i += blockDim.x)
    all += __hip_atomic_load(&partial[i], __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
  all = block_sum(all);
  if (t == 0) *result = all;
}

KERNEL(256) reduce_int(int *result, int *partial, uint32 *arrived, const int *in, uint32 n) {
  reduce(result, partial, arrived, in, n);
}
KERNEL(256) reduce_long(int64 *result, int64 *partial, uint32 *arrived, const int64 *in, uint32 n) {
  reduce(result, partial, arrived, in, n);
}
KERNEL(256) reduce_double(double *result, double *partial, uint32 *arrived, const double *in, uint32 n) {
  reduce(result, partial, arrived, in, n);
}

// Prefix sums of the whole array: each block waits for the one before it.
KERNEL(128) scan(uint32 *out, const uint32 *in, uint32 *sums, uint32 *ready, uint32 n) {
  __shared__ uint32 part[2][128];
  __shared__ uint32 before;
  const uint32 t = threadIdx.x, i = blockIdx.x * 128 + t;
  uint32 at = 0;
  part[0][t] = i < n ? in[i] : 0;
  __syncthreads();
  for (uint32 step = 1; step < 128; step *= 2, at ^= 1) {
    part[at ^ 1][t] = part[at][t] + (t >= step ? part[at][t - step] : 0);
    __syncthreads();
  }
  if (t == 0) {
    before = 0;
    if (blockIdx.x > 0) {
      while (__hip_atomic_load(&ready[blockIdx.x - 1], __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_AGENT) == 0)
        __builtin_amdgcn_s_sleep(1);
      before = __hip_atomic_load(&sums[blockIdx.x - 1], __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
    }
    __hip_atomic_store(&sums[blockIdx.x], before + part[at][127], __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
    __hip_atomic_store(&ready[blockIdx.x], 1u, __ATOMIC_RELEASE, __HIP_MEMORY_SCOPE_AGENT);
  }
  __syncthreads();
  if (i < n) out[i] = before + part[at][t];
}

// Tiles with a spare column, so that columns are in different banks; blocks of 32 x 8.
KERNEL(256) transpose(float *out, const float *in, uint32 rows, uint32 columns) {
  __shared__ float tile[32][33];
  const uint32 row0 = blockIdx.y * 32, column0 = blockIdx.x * 32;
  for (uint32 r = threadIdx.y; r < 32; r += blockDim.y)
    if (row0 + r < rows && column0 + threadIdx.x < columns)
      tile[r][threadIdx.x] = in[(row0 + r) * columns + column0 + threadIdx.x];
  __syncthreads();
  for (uint32 c = threadIdx.y; c < 32; c += blockDim.y)
    if (column0 + c < columns && row0 + threadIdx.x < rows)
      out[(column0 + c) * rows + row0 + threadIdx.x] = tile[threadIdx.x][c];
}

KERNEL(256) histogram(uint32 *bins, uint32 *largest, const uint8 *in, uint32 n) {
  __shared__ uint32 mine[256];
  mine[threadIdx.x] = 0;
  __syncthreads();
  for (uint32 i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256)
    __hip_atomic_fetch_add(&mine[in[i]], 1u, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP);
  __syncthreads();
  if (mine[threadIdx.x] == 0) return;
  atomicAdd(&bins[threadIdx.x], mine[threadIdx.x]);
  atomicMax(largest, mine[threadIdx.x]);
}

// A product built from compare-and-swap: it has no atomic instruction.
KERNEL(64) multiply_all(uint32 *product, const uint32 *in) {
  uint32 seen = *static_cast<volatile uint32 *>(product);
  for (;;) {
    const uint32 was = atomicCAS(product, seen, seen * in[blockIdx.x * 64 + threadIdx.x]);
    if (was == seen) break;
    seen = was;
  }
}

// 1024 keys and values in LDS, by 512 work-items.
KERNEL(512) bitonic_sort(uint64 *data) {
  __shared__ uint64 items[1024];
  for (uint32 i = threadIdx.x; i < 1024; i += 512) items[i] = data[blockIdx.x * 1024 + i];
  for (uint32 size = 2; size <= 1024; size *= 2)
    for (uint32 stride = size / 2; stride > 0; stride /= 2) {
      __syncthreads();
      const uint32 low = 2 * threadIdx.x - (threadIdx.x & (stride - 1)), high = low + stride;
      const bool up = (low & size) == 0;
      const uint64 a = items[low], b = items[high];
      if ((a > b) == up) {
        items[low] = b;
        items[high] = a;
      }
    }
  __syncthreads();
  for (uint32 i = threadIdx.x; i < 1024; i += 512) data[blockIdx.x * 1024 + i] = items[i];
}

// Keeps the odd numbers, in any order: one atomic per wave.
KERNEL(128) compact(uint32 *out, uint32 *count, const uint32 *in, uint32 n) {
  const uint32 i = blockIdx.x * 128 + threadIdx.x;
  const bool keep = i < n && (in[i] & 1) != 0;
  const uint64 kept = __builtin_amdgcn_ballot_w64(keep);
  if (!keep) return;
  const uint32 rank = __builtin_amdgcn_mbcnt_hi(uint32(kept >> 32), __builtin_amdgcn_mbcnt_lo(uint32(kept), 0));
  uint32 base = 0;
  if (rank == 0) base = atomicAdd(count, uint32(__builtin_popcountl(kept)));
  base = uint32(__shfl(int(base), __builtin_ctzl(kept)));
  out[base + rank] = in[i];
}
