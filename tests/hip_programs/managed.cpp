// Variables shared by host and device.
#include "program.h"

__managed__ int counters[4] = {10, 20, 30, 40};
__managed__ float unused = 2.5f;

__global__ void count() {
  atomicAdd(&counters[threadIdx.x % 4], 1);
}

int main() {
  EXPECT(counters[2] == 30 && unused == 2.5f);
  counters[3] = 100;
  count<<<2, 64>>>();
  HIP(hipDeviceSynchronize());
  EXPECT(counters[0] == 42 && counters[1] == 52 && counters[2] == 62 && counters[3] == 132);
  return 0;
}
