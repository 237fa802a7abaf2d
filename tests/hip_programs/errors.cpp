// Calls that are refused, after which the device continues to work.
#include "program.h"

__global__ __launch_bounds__(128) void bounded(int *out) {
  out[threadIdx.x] = int(threadIdx.x);
}

void no_kernel() {}

int main() {
  int *out = nullptr;
  HIP(hipMalloc(reinterpret_cast<void **>(&out), 128 * sizeof(int)));
  EXPECT(hipMalloc(reinterpret_cast<void **>(&out), size_t(1) << 60) == hipErrorOutOfMemory);
  EXPECT(hipGetLastError() == hipErrorOutOfMemory);
  EXPECT(hipGetLastError() == hipSuccess);

  bounded<<<0, 64>>>(out);
  EXPECT(hipPeekAtLastError() == hipErrorInvalidValue && hipGetLastError() == hipErrorInvalidValue);
  bounded<<<1, 0>>>(out);
  EXPECT(hipGetLastError() == hipErrorInvalidConfiguration);
  bounded<<<1, 129>>>(out);
  EXPECT(hipGetLastError() == hipErrorLaunchFailure);
  bounded<<<1, 2048>>>(out);
  EXPECT(hipGetLastError() == hipErrorInvalidValue);
  bounded<<<1, 64, 65537>>>(out);
  EXPECT(hipGetLastError() == hipErrorInvalidValue);
  void *parameters[] = {&out};
  EXPECT(hipLaunchKernel(reinterpret_cast<const void *>(&no_kernel), dim3(1), dim3(64), parameters, 0,
                         nullptr) == hipErrorInvalidDeviceFunction);
  EXPECT(hipLaunchKernel(reinterpret_cast<const void *>(&bounded), dim3(1), dim3(64), nullptr, 0, nullptr) ==
         hipErrorInvalidValue);
  EXPECT(hipLaunchCooperativeKernel(reinterpret_cast<const void *>(&no_kernel), dim3(1), dim3(64), parameters,
                                    0, nullptr) == hipErrorInvalidDeviceFunction);

  EXPECT(hipSetDevice(99) == hipErrorInvalidDevice);
  EXPECT(hipMemcpy(out, parameters, size_t(1) << 20, hipMemcpyHostToDevice) == hipErrorInvalidValue);
  int local = 0;
  EXPECT(hipFree(&local) == hipErrorInvalidValue);
  hipModule_t module;
  EXPECT(hipModuleLoadData(&module, "this is not a code object, although it is long enough") ==
         hipErrorInvalidImage);
  (void)hipGetLastError();

  HIP(hipMalloc(reinterpret_cast<void **>(&out), 128 * sizeof(int)));
  bounded<<<1, 128>>>(out);
  HIP(hipGetLastError());
  const std::vector<int> values = to_host(out, 128);
  for (int i = 0; i < 128; ++i)
    EXPECT(values[size_t(i)] == i);
  return 0;
}
