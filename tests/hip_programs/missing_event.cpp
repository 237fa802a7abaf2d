// Has a mistake: a stream copies data that a kernel of another stream writes, without waiting for it. It also
// counts its devices, for the tests of the number of devices.
#include "program.h"

__global__ void number(int *values) {
  values[blockIdx.x * blockDim.x + threadIdx.x] = int(threadIdx.x);
}

int main(int count, char **arguments) {
  int devices = 0;
  HIP(hipGetDeviceCount(&devices));
  if (count > 1) EXPECT(devices == std::atoi(arguments[1]));
  int *values = nullptr, *host = nullptr;
  HIP(hipMalloc(reinterpret_cast<void **>(&values), 256 * sizeof(int)));
  HIP(hipHostMalloc(reinterpret_cast<void **>(&host), 256 * sizeof(int), 0));
  hipStream_t kernels, copies;
  HIP(hipStreamCreateWithFlags(&kernels, hipStreamNonBlocking));
  HIP(hipStreamCreateWithFlags(&copies, hipStreamNonBlocking));
  for (int round = 0; round < 3; ++round) {
    number<<<4, 64, 0, kernels>>>(values);
    HIP(hipMemcpyAsync(host, values, 256 * sizeof(int), hipMemcpyDeviceToHost, copies));
    HIP(hipDeviceSynchronize());
  }
  return 0;
}
