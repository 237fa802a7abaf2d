// The softmax of rows, with the device library's expf and LDS whose size the launch sets.
#include "program.h"

extern __shared__ float row_values[];

__global__ void softmax(const float *in, float *out, int columns) {
  float *const scratch = row_values + columns;
  const int lane = int(threadIdx.x), lanes = int(blockDim.x);
  float most = -INFINITY;
  for (int i = lane; i < columns; i += lanes)
    most = fmaxf(most, row_values[i] = in[int(blockIdx.x) * columns + i]);
  const auto combine = [&](float value, auto &&pick) {
    scratch[lane] = value;
    for (int half = lanes / 2; half > 0; half /= 2) {
      __syncthreads();
      if (lane < half) scratch[lane] = pick(scratch[lane], scratch[lane + half]);
    }
    __syncthreads();
    const float result = scratch[0];
    __syncthreads();
    return result;
  };
  most = combine(most, [](float a, float b) { return fmaxf(a, b); });
  float sum = 0;
  for (int i = lane; i < columns; i += lanes)
    sum += row_values[i] = expf(row_values[i] - most);
  sum = combine(sum, [](float a, float b) { return a + b; });
  for (int i = lane; i < columns; i += lanes)
    out[int(blockIdx.x) * columns + i] = row_values[i] / sum;
}

int main() {
  const int rows = 13, columns = 300, lanes = 128;
  std::vector<float> in = random_floats(rows * columns, 5);
  for (float &value : in)
    value *= 20.0f;
  float *const device_in = to_device(in), *const device_out = to_device(std::vector<float>(in.size()));
  hipLaunchKernelGGL(softmax, dim3(rows), dim3(lanes), (columns + lanes) * sizeof(float), nullptr, device_in,
                     device_out, columns);
  HIP(hipGetLastError());
  const std::vector<float> out = to_host(device_out, in.size());
  for (int row = 0; row < rows; ++row) {
    const float *const values = &in[size_t(row * columns)];
    double most = double(values[0]), sum = 0;
    for (int i = 0; i < columns; ++i)
      most = std::fmax(most, double(values[i]));
    for (int i = 0; i < columns; ++i)
      sum += std::exp(double(values[i]) - most);
    for (int i = 0; i < columns; ++i)
      EXPECT(std::fabs(double(out[size_t(row * columns + i)]) - std::exp(double(values[i]) - most) / sum) <
             1e-6);
  }
  return 0;
}
