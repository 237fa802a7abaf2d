// C = A B in F16 with MFMAs of 32 x 32 x 8: a wave computes one tile of C.
#include "program.h"

using half4 = _Float16 __attribute__((ext_vector_type(4)));
using float16 = float __attribute__((ext_vector_type(16)));

__global__ __launch_bounds__(64) void matmul(const _Float16 *a, const _Float16 *b, float *c, int n, int k) {
  const int lane = int(threadIdx.x), row = lane % 32, group = lane / 32;
  const _Float16 *const tile_a = a + (blockIdx.y * 32 + unsigned(row)) * unsigned(k);
  const _Float16 *const tile_b = b + blockIdx.x * 32 + unsigned(row);
  float16 sum = {};
  for (int at = 0; at < k; at += 8) {
    half4 left, right;
    for (int i = 0; i < 4; ++i) {
      left[i] = tile_a[at + 4 * group + i];
      right[i] = tile_b[(at + 4 * group + i) * n];
    }
    sum = __builtin_amdgcn_mfma_f32_32x32x8f16(left, right, sum, 0, 0, 0);
  }
  for (int i = 0; i < 16; ++i) {
    const int down = 8 * (i / 4) + 4 * group + i % 4;
    c[(int(blockIdx.y) * 32 + down) * n + int(blockIdx.x) * 32 + row] = sum[i];
  }
}

int main() {
  const int m = 96, n = 64, k = 72;
  std::vector<_Float16> a(m * k), b(k * n);
  const std::vector<float> random_a = random_floats(a.size(), 1), random_b = random_floats(b.size(), 2);
  for (size_t i = 0; i < a.size(); ++i)
    a[i] = _Float16(random_a[i]);
  for (size_t i = 0; i < b.size(); ++i)
    b[i] = _Float16(random_b[i]);
  _Float16 *const device_a = to_device(a), *const device_b = to_device(b);
  float *const device_c = to_device(std::vector<float>(m * n));
  matmul<<<dim3(n / 32, m / 32), 64>>>(device_a, device_b, device_c, n, k);
  HIP(hipGetLastError());
  const std::vector<float> c = to_host(device_c, m * n);
  for (int row = 0; row < m; ++row)
    for (int column = 0; column < n; ++column) {
      double sum = 0;
      for (int i = 0; i < k; ++i)
        sum += double(a[size_t(row * k + i)]) * double(b[size_t(i * n + column)]);
      EXPECT(std::fabs(double(c[size_t(row * n + column)]) - sum) < 1e-4);
    }
  return 0;
}
