// Matrix products, with and without the matrix core, and softmax.
#include "device.h"

using half4 = _Float16 __attribute__((ext_vector_type(4)));
using short4 = short __attribute__((ext_vector_type(4)));
using float4 = float __attribute__((ext_vector_type(4)));
using float16 = float __attribute__((ext_vector_type(16)));
template <int n> struct Elements { float of[n]; };
template <class Vector, class T> __device__ Vector all(const T (&elements)[4]) {
  Vector vector;
  __builtin_memcpy(&vector, elements, sizeof vector);
  return vector;
}

// C = A * B by tiles of 16 x 16 in LDS; C is m x n, A m x k, all rows contiguous.
template <class T> __device__ void tiled(T *c, const T *a, const T *b, int m, int n, int k) {
  __shared__ T left[16][16], right[16][17];
  const int x = int(threadIdx.x), y = int(threadIdx.y), row = int(blockIdx.y) * 16 + y, column = int(blockIdx.x) * 16 + x;
  T sum = 0;
  for (int kk = 0; kk < k; kk += 16) {
    left[y][x] = row < m && kk + x < k ? a[row * k + kk + x] : T(0);
    right[y][x] = column < n && kk + y < k ? b[(kk + y) * n + column] : T(0);
    __syncthreads();
    for (int i = 0; i < 16; ++i) sum += left[y][i] * right[i][x];
    __syncthreads();
  }
  if (row < m && column < n) c[row * n + column] = sum;
}
KERNEL(256) tiled_float(float *c, const float *a, const float *b, int m, int n, int k) { tiled(c, a, b, m, n, k); }
KERNEL(256) tiled_double(double *c, const double *a, const double *b, int m, int n, int k) { tiled(c, a, b, m, n, k); }

// One wave per tile of C.
KERNEL(64) mfma_f16(float *c, const _Float16 *a, const _Float16 *b, int m, int n, int k) {
  const int lane = int(threadIdx.x), row0 = int(blockIdx.y) * 32, column0 = int(blockIdx.x) * 32;
  float16 sum = 0;
  for (int kk = 0; kk < k; kk += 8) {
    _Float16 x[4], y[4];
    for (int e = 0; e < 4; ++e) {
      x[e] = a[(row0 + lane % 32) * k + kk + lane / 32 * 4 + e];
      y[e] = b[(kk + lane / 32 * 4 + e) * n + column0 + lane % 32];
    }
    sum = __builtin_amdgcn_mfma_f32_32x32x8f16(all<half4>(x), all<half4>(y), sum, 0, 0, 0);
  }
  const auto result = __builtin_bit_cast(Elements<16>, sum);
  for (int r = 0; r < 16; ++r)
    c[(row0 + 8 * (r / 4) + 4 * (lane / 32) + r % 4) * n + column0 + lane % 32] = result.of[r];
}
KERNEL(64) mfma_bf16(float *c, const short *a, const short *b, int m, int n, int k) {
  const int lane = int(threadIdx.x), row0 = int(blockIdx.y) * 16, column0 = int(blockIdx.x) * 16;
  float4 sum = 0;
  for (int kk = 0; kk < k; kk += 16) {
    short x[4], y[4];
    for (int e = 0; e < 4; ++e) {
      x[e] = a[(row0 + lane % 16) * k + kk + lane / 16 * 4 + e];
      y[e] = b[(kk + lane / 16 * 4 + e) * n + column0 + lane % 16];
    }
    sum = __builtin_amdgcn_mfma_f32_16x16x16bf16_1k(all<short4>(x), all<short4>(y), sum, 0, 0, 0);
  }
  const auto result = __builtin_bit_cast(Elements<4>, sum);
  for (int r = 0; r < 4; ++r) c[(row0 + 4 * (lane / 16) + r) * n + column0 + lane % 16] = result.of[r];
}
KERNEL(64) mfma_f32(float *c, const float *a, const float *b, int m, int n, int k) {
  const int lane = int(threadIdx.x), row0 = int(blockIdx.y) * 16, column0 = int(blockIdx.x) * 16;
  float4 sum = 0;
  for (int kk = 0; kk < k; kk += 4)
    sum = __builtin_amdgcn_mfma_f32_16x16x4f32(a[(row0 + lane % 16) * k + kk + lane / 16],
                                               b[(kk + lane / 16) * n + column0 + lane % 16], sum, 0, 0, 0);
  const auto result = __builtin_bit_cast(Elements<4>, sum);
  for (int r = 0; r < 4; ++r) c[(row0 + 4 * (lane / 16) + r) * n + column0 + lane % 16] = result.of[r];
}

// A row per block: maximum and sum over the lanes of each wave, then over the waves.
KERNEL(256) softmax(float *out, const float *in, int columns) {
  __shared__ float part[4];
  const float *row = in + blockIdx.x * uint32(columns);
  auto over_block = [&](float mine, auto combine) {
    for (int mask = 32; mask > 0; mask /= 2) mine = combine(mine, __shfl_xor(mine, mask));
    if (threadIdx.x % 64 == 0) part[threadIdx.x / 64] = mine;
    __syncthreads();
    mine = part[0];
    for (int wave = 1; wave < 4; ++wave) mine = combine(mine, part[wave]);
    __syncthreads();
    return mine;
  };
  float largest = -__builtin_inff(), sum = 0;
  for (int i = int(threadIdx.x); i < columns; i += 256) largest = __builtin_fmaxf(largest, row[i]);
  largest = over_block(largest, [](float a, float b) { return __builtin_fmaxf(a, b); });
  for (int i = int(threadIdx.x); i < columns; i += 256) sum += __builtin_expf(row[i] - largest);
  sum = over_block(sum, [](float a, float b) { return a + b; });
  for (int i = int(threadIdx.x); i < columns; i += 256)
    out[blockIdx.x * uint32(columns) + uint32(i)] = __builtin_expf(row[i] - largest) / sum;
}
