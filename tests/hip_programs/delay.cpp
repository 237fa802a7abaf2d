// Kernels that wait for a clock, as tests of streams do to keep a device busy: they end soon, and each run
// reads the same times.
#include "program.h"

#include <chrono>

namespace {

constexpr long long clocks_per_second = 2'100'000'000;
constexpr long long ticks_per_second = 100'000'000;

// What wall_clock64 reads, which is younger than Debian's headers.
__device__ long long wall_clock() {
  return (long long)__builtin_amdgcn_s_memrealtime();
}

enum class Clock { chip, wall };

template <Clock which> __device__ long long read_clock() {
  return which == Clock::chip ? clock64() : wall_clock();
}

template <Clock which> __global__ void wait_for_clock(long long length, long long *ends) {
  const long long start = read_clock<which>();
  long long now = start;
  while (now - start < length)
    now = read_clock<which>();
  ends[0] = start;
  ends[1] = now;
}

/// The times at which a kernel began and ended.
template <class Kernel> std::vector<long long> times(Kernel kernel, long long length, long long *ends) {
  kernel<<<1, 1>>>(length, ends);
  HIP(hipGetLastError());
  return to_host(ends, 2);
}

} // namespace

int main() {
  long long *ends = nullptr;
  HIP(hipMalloc(reinterpret_cast<void **>(&ends), 2 * sizeof(long long)));
  long long earlier = -1; // clk
  const auto started = std::chrono::steady_clock::now();
  for (long long length : {100LL, clocks_per_second / 1000, 10 * clocks_per_second}) {
    const std::vector<long long> got = times(wait_for_clock<Clock::chip>, length, ends);
    const long long took = got[1] - got[0];
    EXPECT(took >= length && took <= length + length / 16 + 64);
    EXPECT(got[0] > earlier); // the clock goes on from launch to launch
    earlier = got[1];
  }
  for (long long length : {10LL, ticks_per_second / 1000, 10 * ticks_per_second}) {
    const std::vector<long long> got = times(wait_for_clock<Clock::wall>, length, ends);
    const long long took = got[1] - got[0];
    EXPECT(took >= length && took <= length + length / 16 + 4);
    EXPECT(got[0] >= earlier / (clocks_per_second / ticks_per_second)); // both count the same time
    earlier = got[1] * (clocks_per_second / ticks_per_second);
  }
  // The kernels waited for 20 seconds.
  EXPECT(std::chrono::steady_clock::now() - started < std::chrono::seconds(10));
  std::printf("%lld\n", earlier); // the same in every run
  HIP(hipFree(ends));
}
