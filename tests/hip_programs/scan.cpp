// Prefix sums in three launches: of workgroups, of their totals, and the sum of both.
#include "program.h"

constexpr int block = 256;

__global__ void scan(const int *in, int *out, int *totals, int count) {
  __shared__ int values[2][block];
  const int lane = int(threadIdx.x), i = int(blockIdx.x) * block + lane;
  int from = 0;
  values[0][lane] = i < count ? in[i] : 0;
  for (int distance = 1; distance < block; distance *= 2) {
    __syncthreads();
    values[1 - from][lane] = values[from][lane] + (lane >= distance ? values[from][lane - distance] : 0);
    from = 1 - from;
  }
  if (i < count) out[i] = values[from][lane];
  if (lane == block - 1 && totals != nullptr) totals[blockIdx.x] = values[from][lane];
}

__global__ void add_totals(int *out, const int *totals, int count) {
  const int i = int((blockIdx.x + 1) * block + threadIdx.x);
  if (i < count) out[i] += totals[blockIdx.x];
}

int main() {
  const int count = 20000, blocks = (count + block - 1) / block;
  std::vector<int> in(count), expected(count);
  unsigned state = 3;
  int sum = 0;
  for (int i = 0; i < count; ++i) {
    in[size_t(i)] = int(next_random(state) >> 24);
    expected[size_t(i)] = sum += in[size_t(i)];
  }
  int *const device_in = to_device(in), *const out = to_device(std::vector<int>(count));
  int *const totals = to_device(std::vector<int>(blocks));
  hipStream_t stream;
  HIP(hipStreamCreate(&stream));
  scan<<<blocks, block, 0, stream>>>(device_in, out, totals, count);
  scan<<<1, block, 0, stream>>>(totals, totals, nullptr, blocks);
  add_totals<<<blocks - 1, block, 0, stream>>>(out, totals, count);
  HIP(hipGetLastError());
  HIP(hipStreamSynchronize(stream));
  EXPECT(to_host(out, count) == expected);
  return 0;
}
