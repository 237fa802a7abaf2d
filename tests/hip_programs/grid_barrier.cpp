// A barrier of all workgroups of a cooperative launch, as the device libraries of ROCm 6 and 7 have it: with
// counters in a block of memory that a hidden argument points to. Debian's libraries use global wave sync.
#include "program.h"

namespace {

struct GridInfo {
  void *others;
  unsigned grid, grids;
  unsigned long long items_before, items;
  unsigned arrived; // a counter in the low half; each passed barrier adds one to the high half
  unsigned unused;
  unsigned workgroups;
};

__device__ GridInfo *grid_info() {
  // Number 11 of the hidden arguments of code object version 5.
  return reinterpret_cast<GridInfo *const *>((const char *)__builtin_amdgcn_implicitarg_ptr())[11];
}

__device__ void grid_barrier() {
  __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "agent");
  __syncthreads();
  if (threadIdx.x == 0) {
    GridInfo *const info = grid_info();
    const unsigned last = info->workgroups - 1;
    const unsigned before =
        __hip_atomic_fetch_add(&info->arrived, 1u, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
    if ((before & 0xffff) == last)
      __hip_atomic_fetch_add(&info->arrived, 0x10000 - info->workgroups, __ATOMIC_RELAXED,
                             __HIP_MEMORY_SCOPE_AGENT);
    else
      while (((__hip_atomic_load(&info->arrived, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT) ^ before) >>
              16) == 0)
        __builtin_amdgcn_s_sleep(1);
  }
  __syncthreads();
  __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "agent");
}

__global__ void rotate(int *values, int rounds) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  const unsigned all = gridDim.x * blockDim.x;
  for (int round = 0; round < rounds; ++round) {
    const int next = values[(i + blockDim.x) % all];
    grid_barrier();
    values[i] = next;
    grid_barrier();
  }
}

__global__ void describe(unsigned long long *out) {
  if (blockIdx.x + blockIdx.y + blockIdx.z != 0) return;
  const GridInfo *const info = grid_info();
  out[0] = info != nullptr;
  if (info != nullptr) out[1] = info->workgroups;
}

} // namespace

int main() {
  constexpr int blocks = 24, threads = 128, rounds = 5, count = blocks * threads;
  std::vector<int> values(count);
  for (int i = 0; i < count; ++i)
    values[size_t(i)] = i;
  int *device = to_device(values);
  int passes = rounds;
  void *arguments[] = {&device, &passes};
  HIP(hipLaunchCooperativeKernel(reinterpret_cast<void *>(rotate), dim3(blocks), dim3(threads), arguments, 0,
                                 nullptr));
  const std::vector<int> got = to_host(device, count);
  for (int i = 0; i < count; ++i)
    EXPECT(got[size_t(i)] == (i + rounds * threads) % count);

  // The argument is null in other launches: cooperative groups call the grid invalid then.
  unsigned long long *about = nullptr;
  HIP(hipMalloc(reinterpret_cast<void **>(&about), 2 * sizeof(*about)));
  HIP(hipMemset(about, 0, 2 * sizeof(*about)));
  describe<<<1, 1>>>(about);
  EXPECT(to_host(about, 2)[0] == 0);
  void *describe_arguments[] = {&about};
  HIP(hipLaunchCooperativeKernel(reinterpret_cast<void *>(describe), dim3(2, 3, 4), dim3(1),
                                 describe_arguments, 0, nullptr));
  const std::vector<unsigned long long> told = to_host(about, 2);
  EXPECT(told[0] == 1 && told[1] == 24);
  HIP(hipFree(about));
  HIP(hipFree(device));
}
