// Kernels that need services of the host. The argument names the one to launch; "none" launches one that
// could print, but does not.
#include "program.h"

#include <cassert>
#include <cstring>

__global__ void prints(int number) {
  if (number != 0) printf("item %d of %d\n", int(threadIdx.x), number);
}

__global__ void asserts(const int *numbers) {
  assert(numbers[threadIdx.x] < 100);
}

extern "C" __device__ unsigned long long __ockl_dm_alloc(unsigned long long bytes); // HIP's malloc since 4.5
__global__ void allocates(int **out) {
  int *const memory = reinterpret_cast<int *>(__ockl_dm_alloc(64));
  *memory = int(threadIdx.x);
  out[threadIdx.x] = memory;
}

int main(int count, char **names) {
  const char *const name = count > 1 ? names[1] : "none";
  std::vector<int> numbers(64, 7);
  if (std::strcmp(name, "assert") == 0) numbers[5] = 100;
  int *const device_numbers = to_device(numbers);
  int **const pointers = to_device(std::vector<int *>(64));
  if (std::strcmp(name, "printf") == 0) prints<<<1, 64>>>(1);
  if (std::strcmp(name, "none") == 0) prints<<<1, 64>>>(0);
  if (std::strcmp(name, "assert") == 0 || std::strcmp(name, "none") == 0) asserts<<<1, 64>>>(device_numbers);
  if (std::strcmp(name, "malloc") == 0) allocates<<<1, 64>>>(pointers);
  HIP(hipDeviceSynchronize());
  return 0;
}
