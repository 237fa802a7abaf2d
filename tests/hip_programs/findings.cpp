// Kernels with findings that leave their results usable, and one without. The arguments name those to launch,
// in order; the program fails if HIP does, or if a result is lost.
#include "program.h"

#include <cstring>

constexpr int items = 256;

/// Each item doubles its own value.
__global__ void good(int *values) {
  values[threadIdx.x] *= 2;
}

/// The same by way of LDS. Each wave stores a factor for the next one, and a barrier is missing, which does
/// no harm while the waves run one after the other.
__global__ void race(int *values) {
  __shared__ int factors[items + 64];
  if (threadIdx.x < 64) factors[threadIdx.x] = 2;
  factors[threadIdx.x + 64] = 2;
  values[threadIdx.x] *= factors[threadIdx.x];
}

/// The same, with a branch on memory that nothing has written.
__global__ void fresh(int *values, const int *unwritten) {
  if (unwritten[0] == 54321) values[threadIdx.x] = 0;
  values[threadIdx.x] *= 2;
}

/// Beyond the end of the memory.
__global__ void beyond(int *values) {
  values[threadIdx.x + 1] = 0;
}

int main(int count, char **names) {
  std::vector<int> expected(items);
  for (int i = 0; i < items; ++i)
    expected[size_t(i)] = i;
  int *const values = to_device(expected);
  int *unwritten = nullptr;
  HIP(hipMalloc(reinterpret_cast<void **>(&unwritten), items * sizeof(int)));
  for (int i = 1; i < count; ++i) {
    if (std::strcmp(names[i], "good") == 0) good<<<1, items>>>(values);
    if (std::strcmp(names[i], "race") == 0) race<<<1, items>>>(values);
    if (std::strcmp(names[i], "fresh") == 0) fresh<<<1, items>>>(values, unwritten);
    if (std::strcmp(names[i], "beyond") == 0) beyond<<<1, items>>>(values);
    HIP(hipDeviceSynchronize());
    for (int &value : expected)
      value *= 2;
  }
  EXPECT(to_host(values, items) == expected);
  HIP(hipFree(values));
  HIP(hipFree(unwritten));
  std::printf("results kept\n");
  return 0;
}
