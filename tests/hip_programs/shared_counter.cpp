// Two streams add to the same counters, which does not require an order between them.
#include "program.h"

__global__ void count(unsigned *counters, unsigned step) {
  atomicAdd(&counters[threadIdx.x], step);
}

int main() {
  constexpr unsigned threads = 128, launches = 10;
  unsigned *const counters = to_device(std::vector<unsigned>(threads));
  hipStream_t streams[2];
  for (hipStream_t &stream : streams)
    HIP(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
  for (unsigned i = 0; i < launches; ++i)
    count<<<4, threads, 0, streams[i % 2]>>>(counters, i % 2 + 1);
  for (hipStream_t stream : streams) {
    HIP(hipStreamSynchronize(stream));
    HIP(hipStreamDestroy(stream));
  }
  EXPECT(to_host(counters, threads) == std::vector<unsigned>(threads, 4 * (5 + 10)));
  HIP(hipFree(counters));
  return 0;
}
