// Constants, device variables and managed variables, by their symbols.
#include "program.h"

__constant__ float weights[4];
__device__ unsigned total;
__device__ int table[256];

__global__ void weigh(const float *in, float *out, int count) {
  const int i = int(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= count) return;
  out[i] = in[i] * weights[i % 4] + float(table[i % 256]);
  atomicAdd(&total, unsigned(i));
}

int main() {
  const int count = 1000;
  const std::vector<float> in = random_floats(count, 1);
  const float host_weights[4] = {1.5f, -2.0f, 0.25f, 4.0f};
  HIP(hipMemcpyToSymbol(HIP_SYMBOL(weights), host_weights, 2 * sizeof(float)));
  HIP(hipMemcpyToSymbol(HIP_SYMBOL(weights), host_weights + 2, 2 * sizeof(float), 2 * sizeof(float)));
  const unsigned zero = 0;
  HIP(hipMemcpyToSymbol(HIP_SYMBOL(total), &zero, sizeof zero));

  size_t size = 0;
  HIP(hipGetSymbolSize(&size, HIP_SYMBOL(table)));
  EXPECT(size == sizeof table);
  void *address = nullptr;
  HIP(hipGetSymbolAddress(&address, HIP_SYMBOL(table)));
  std::vector<int> host_table(256);
  for (int i = 0; i < 256; ++i)
    host_table[size_t(i)] = i * i;
  HIP(hipMemcpy(address, host_table.data(), size, hipMemcpyHostToDevice));

  float *const device_in = to_device(in);
  float *const device_out = to_device(std::vector<float>(count));
  weigh<<<(count + 127) / 128, 128>>>(device_in, device_out, count);
  HIP(hipGetLastError());
  const std::vector<float> out = to_host(device_out, count);
  for (int i = 0; i < count; ++i)
    EXPECT(std::fabs(out[size_t(i)] -
                     (in[size_t(i)] * host_weights[i % 4] + float(host_table[size_t(i % 256)]))) < 1e-2f);
  unsigned sum = 0;
  HIP(hipMemcpyFromSymbol(&sum, HIP_SYMBOL(total), sizeof sum));
  EXPECT(sum == unsigned(count) * (count - 1) / 2);
  int entry = 0;
  HIP(hipMemcpyFromSymbol(&entry, HIP_SYMBOL(table), sizeof entry, 200 * sizeof entry));
  EXPECT(entry == 200 * 200);

  EXPECT(hipMemcpyToSymbol(HIP_SYMBOL(weights), host_weights, sizeof(float), 4 * sizeof(float)) ==
         hipErrorInvalidValue);
  EXPECT(hipMemcpyFromSymbol(&sum, HIP_SYMBOL(total), sizeof sum, 1) == hipErrorInvalidValue);
  EXPECT(hipMemcpyFromSymbol(&entry, HIP_SYMBOL(table), sizeof entry, sizeof table) == hipErrorInvalidValue);
  EXPECT(hipMemcpyFromSymbol(&entry, HIP_SYMBOL(table), sizeof entry, ~size_t(0)) == hipErrorInvalidValue);
  int no_symbol = 0;
  EXPECT(hipGetSymbolAddress(&address, &no_symbol) == hipErrorInvalidSymbol);
  EXPECT(hipMemcpyFromSymbol(&sum, HIP_SYMBOL(total), sizeof sum, 0, hipMemcpyHostToDevice) ==
         hipErrorInvalidMemcpyDirection);
  return 0;
}
