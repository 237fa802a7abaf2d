// The kind of mistake that an emulator is for: a barrier is missing, and the program reports success.
#include "program.h"

__global__ void reverse(const int *in, int *out) {
  __shared__ int values[256];
  values[threadIdx.x] = in[threadIdx.x];
  out[threadIdx.x] = values[255 - threadIdx.x];
}

int main() {
  std::vector<int> in(256);
  int *const device_in = to_device(in), *const out = to_device(in);
  reverse<<<1, 256>>>(device_in, out);
  (void)hipDeviceSynchronize(); // which would reveal it
  return 0;
}
